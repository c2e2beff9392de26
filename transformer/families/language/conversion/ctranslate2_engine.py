"""A causal language model in CTranslate2, without PyTorch."""

from pathlib import Path

import ctranslate2
import numpy as np

from transformer.conversion.ctranslate2_session import open_model
from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.families.language.conversion.engine import ConvertedEngine, Sizes
from transformer.families.language.decoding.interface import Floats


class CTranslate2Engine(ConvertedEngine):
    """A converted causal model, as an `Engine`."""

    def __init__(self, folder: Path, sizes: Sizes, *, threads: int | None = None) -> None:
        """folder: written by `write_ctranslate2`. Raises UserError when it is missing or broken."""
        super().__init__(sizes)
        self._model = open_model(ctranslate2.Generator, folder, threads)

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """As `Engine.log_probabilities`."""
        real = [row[row != self.pad_id].tolist() for row in token_ids]
        found = np.asarray(self._model().forward_batch(real, return_log_probs=True))
        row, column = np.divmod(places, token_ids.shape[1])
        result: Floats = found[row, column]
        return result

    def states(self, token_ids: Ids) -> Floats:
        """Raises UserError: the engine gives no states."""
        raise UserError("CTranslate2 gives no states of a causal model: embed with the engine onnx or torch")
