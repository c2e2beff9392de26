"""A causal PyTorch model as what generation needs."""

import torch
from torch import Tensor

from transformer.encoded.batching import Ids
from transformer.families.language.nn.cache import PrefixCache
from transformer.families.language.nn.model import LanguageTransformer
from transformer.generation.torch_steps import TorchSteps


class _TorchCache:
    """A model's cache, selected by NumPy's indices."""

    def __init__(self, cache: PrefixCache, device: torch.device) -> None:
        self.held, self._device = cache, device

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        with torch.inference_mode():
            self.held.select(torch.from_numpy(rows).to(self._device))


class CausalGenerator(TorchSteps):
    """A causal language model on its device, as a `Generator`; the source of a text is what it begins with."""

    def __init__(self, model: LanguageTransformer, never: tuple[int, ...]) -> None:
        """never: the tokens that are never generated."""
        self._model, self._never = model.eval(), never
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.pad_id

    def start(self, source_ids: Ids) -> _TorchCache:
        """As `Generator.start`; the texts of a batch are equally long."""
        with torch.inference_mode():
            return _TorchCache(self._model.start(torch.from_numpy(source_ids).to(self._device)), self._device)

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device

    def _step(self, last: Ids, cache: _TorchCache) -> Tensor:
        return self._model.step(torch.from_numpy(last).to(self._device), cache.held)

    def _logits(self, states: Tensor) -> Tensor:
        return self._model.logits(states)
