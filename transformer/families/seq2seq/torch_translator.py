"""Translation with PyTorch."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.core.validation import validate
from transformer.data.vocabulary import Vocabulary, read_vocabularies, require_size
from transformer.families.seq2seq.decode import DecodingParams, Search
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqModel
from transformer.families.seq2seq.network import build_model
from transformer.families.seq2seq.translator import Translator
from transformer.inference.torch_steps import TorchSteps
from transformer.nn.device import in_turns, inference_device
from transformer.nn.trained import load_config, load_model


class TorchGenerator(TorchSteps):
    """A `Generator` that runs a translation model on its device."""

    def __init__(self, model: Seq2SeqModel, target: Vocabulary) -> None:
        super().__init__(model, never=(target.pad_id, target.begin_id))
        self._output = model.output
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.source_pad_id

    def _logits(self, states: Tensor) -> Tensor:
        logits: Tensor = self._output(states)
        return logits


class _Search(Search):
    """Search for one thread at a time."""

    __call__ = in_turns(Search.__call__)


class TorchTranslator(Translator):
    """A translator with access to its network."""

    def __init__(
        self, trained: Path, vocab: Path, pretokenizer: Path, decoding: DecodingParams, device: torch.device
    ) -> None:
        """trained, vocab: outputs of train and build_vocab; pretokenizer: the folder with `pretokenizer.json`.

        Raises UserError if one of them is missing or broken.
        """
        config = load_config(trained, Seq2SeqConfig)
        self.model = load_model(trained, lambda: build_model(config)).to(device)
        vocabularies = read_vocabularies(vocab, "source", "target")
        require_size(vocabularies["source"], config.source_size, vocab)
        require_size(vocabularies["target"], config.target_size, vocab)
        self.generator = TorchGenerator(self.model, vocabularies["target"])
        decoder = _Search(self.generator, vocabularies["source"], vocabularies["target"])
        super().__init__(decoder, vocabularies, pretokenizer, decoding)


def open_exported(bundle: Path, decoding: dict[str, Any], device: str) -> TorchTranslator:
    """Open an exported translator. decoding: from its config.json. Raises UserError."""
    params = validate(DecodingParams, decoding, where=bundle / "config.json", prefix="decoding")
    return TorchTranslator(bundle / "model", bundle / "vocab", bundle, params, inference_device(device))
