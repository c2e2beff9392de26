"""A PyTorch model as what decoding needs."""

import torch
from torch import Tensor

from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.nn.interface import Cache, Seq2SeqModel
from transformer.generation.torch_steps import TorchSteps


class _TorchCache:
    """A model's cache, selected by NumPy's indices."""

    def __init__(self, cache: Cache, device: torch.device) -> None:
        self.held, self._device = cache, device

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        with torch.inference_mode():
            self.held.select(torch.from_numpy(rows).to(self._device))


class TorchGenerator(TorchSteps):
    """A translation model on its device, as a `Generator`."""

    def __init__(self, model: Seq2SeqModel, target: Vocabulary) -> None:
        self._model = model.eval()
        self._never = (target.pad_id, target.begin_id)
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.source_pad_id

    def start(self, source_ids: Ids) -> _TorchCache:
        """As `Generator.start`."""
        with torch.inference_mode():
            return _TorchCache(self._model.start(torch.from_numpy(source_ids).to(self._device)), self._device)

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device

    def _step(self, last: Ids, cache: _TorchCache) -> Tensor:
        """The states (B, C)."""
        return self._model.step(torch.from_numpy(last).to(self._device), cache.held)

    def _logits(self, states: Tensor) -> Tensor:
        logits: Tensor = self._model.output(states)
        return logits
