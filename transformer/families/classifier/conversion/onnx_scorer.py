"""Classification with ONNX Runtime, without PyTorch."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.conversion.onnx_session import open_session
from transformer.encoded.batching import Ids


class OnnxScorer:
    """A `Scorer` that runs the classifier's ONNX graph."""

    def __init__(self, folder: Path, *, positions: int, pad_id: int, classes: int, threads: int | None = None) -> None:
        """folder: contains classifier.onnx. Raises UserError if it is missing or broken."""
        self.positions, self.pad_id, self.classes = positions, pad_id, classes
        self._session = open_session(folder / "classifier.onnx", threads)

    def logits(self, token_ids: Ids) -> NDArray[np.floating[Any]]:
        """Return the logits (B, K) of token_ids (B, S), padded at the end."""
        (logits,) = self._session().run(["logits"], {"ids": token_ids})
        found: NDArray[np.floating[Any]] = logits
        return found
