"""Causal language modelling with CTranslate2, without PyTorch."""

from pathlib import Path

import ctranslate2
import numpy as np

from transformer.conversion.ctranslate2_session import open_model
from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.families.language.conversion.engine import ConvertedEngine, Sizes
from transformer.families.language.decoding.interface import Floats


class CTranslate2Engine(ConvertedEngine):
    """An `Engine` that runs a converted causal model."""

    def __init__(self, folder: Path, sizes: Sizes, *, threads: int | None = None) -> None:
        """folder: written by `write_ctranslate2`. Raises UserError if it is missing or broken."""
        super().__init__(sizes)
        self._model = open_model(ctranslate2.Generator, folder, threads)

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""
        real = [row[row != self.pad_id].tolist() for row in token_ids]
        found = np.asarray(self._model().forward_batch(real, return_log_probs=True))
        row, column = np.divmod(places, token_ids.shape[1])
        result: Floats = found[row, column]
        return result

    def states(self, token_ids: Ids) -> Floats:
        """Raise UserError: CTranslate2 returns no hidden states."""
        raise UserError("CTranslate2 gives no states of a causal model: embed with the engine onnx or torch")
