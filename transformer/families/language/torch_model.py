"""Inference with PyTorch."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.core.validation import validate
from transformer.data.store import Ids
from transformer.data.vocabulary import read_vocabularies, require_size
from transformer.families.language.interface import LanguageConfig
from transformer.families.language.model import LanguageModel, never_generated
from transformer.families.language.network import LanguageNetwork
from transformer.families.language.networks import build_network, use
from transformer.families.language.scoring import AnswerParams, Floats
from transformer.inference.torch_steps import TorchSteps
from transformer.nn.device import in_turns, inference_device
from transformer.nn.trained import load_config, load_model


class CausalGenerator(TorchSteps):
    """A `Generator` that runs a causal language model on its device; the source is the prompt.

    The prompts of a batch have equal length.
    """

    def __init__(self, model: LanguageNetwork, never: tuple[int, ...]) -> None:
        """never: tokens that are never generated."""
        super().__init__(model, never)
        self._model = model
        self.positions = model.context
        self.source_pad_id = model.config.pad_id

    def _logits(self, states: Tensor) -> Tensor:
        return self._model.logits(states)


_ROWS = 512  # positions whose logits are in memory at a time


class TorchEngine:
    """An `Engine` that runs the network on its device."""

    def __init__(self, model: LanguageNetwork, never: tuple[int, ...]) -> None:
        """never: tokens that are never generated."""
        self._model, self._never = model.eval(), never
        config = model.config
        self.causal, self.positions = model.causal, model.context
        self.pad_id, self.mask_id = config.pad_id, config.mask_id

    @cached_property
    def generator(self) -> CausalGenerator:
        """Generator that continues texts with a causal model."""
        return CausalGenerator(self._model, self._never)

    @in_turns
    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """Return log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,)."""
        with torch.inference_mode():
            states, values, best = self._at(token_ids, places), [], []
            for start in range(0, len(places), _ROWS):
                found = self._model.logits(states[start : start + _ROWS]).log_softmax(dim=-1)
                wanted = torch.from_numpy(targets[start : start + _ROWS, None]).to(found.device)
                values.append(found.gather(1, wanted)[:, 0].cpu().numpy())
                best.append(found.argmax(dim=-1).cpu().numpy())
        return np.concatenate(values), np.concatenate(best)

    @in_turns
    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""
        with torch.inference_mode():
            found: Floats = self._model.logits(self._at(token_ids, places)).log_softmax(dim=-1).cpu().numpy()
        return found

    @in_turns
    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""
        with torch.inference_mode():
            found: Floats = self._model(self._given(token_ids)).cpu().numpy()
        return found

    def _at(self, token_ids: Ids, places: Ids) -> Tensor:
        states: Tensor = self._model(self._given(token_ids)).flatten(0, 1)
        return states.index_select(0, torch.from_numpy(places).to(states.device))

    def _given(self, token_ids: Ids) -> Tensor:
        return torch.from_numpy(token_ids).to(next(self._model.parameters()).device)


class TorchLanguageModel(LanguageModel):
    """A language model with access to its network."""

    engine: TorchEngine
    continuations = in_turns(LanguageModel.continuations)

    def __init__(
        self, trained: Path, vocab: Path, pretokenizer: Path, decoding: AnswerParams, device: torch.device
    ) -> None:
        """trained, vocab: outputs of train and build_vocab; pretokenizer: the folder with `pretokenizer.json`.

        Raises UserError if a file is missing or broken.
        """
        config = load_config(trained, LanguageConfig)
        self.model = load_model(trained, lambda: build_network(config)).to(device)
        use(self.model, memory_length=decoding.memory_length, hash_rounds=decoding.hash_rounds)
        vocabulary = read_vocabularies(vocab, "text")["text"]
        require_size(vocabulary, config.size, vocab)
        super().__init__(TorchEngine(self.model, never_generated(vocabulary)), vocabulary, pretokenizer, decoding)


def open_exported(bundle: Path, decoding: dict[str, Any], device: str) -> TorchLanguageModel:
    """Open an exported language model. decoding: from its config.json. Raises UserError."""
    params = validate(AnswerParams, decoding, where=bundle / "config.json", prefix="decoding")
    return TorchLanguageModel(bundle / "model", bundle / "vocab", bundle, params, inference_device(device))
