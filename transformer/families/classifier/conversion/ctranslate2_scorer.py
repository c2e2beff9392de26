"""Classification with CTranslate2's encoder, without PyTorch: pooling and output layer run in NumPy."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import ctranslate2
import numpy as np
from numpy.typing import NDArray

from transformer.conversion.ctranslate2_session import open_model
from transformer.core.errors import UserError
from transformer.encoded.batching import Ids

HEAD = "head.npz"
Floats = NDArray[np.floating[Any]]


class CTranslate2Scorer:
    """A `Scorer` that runs a converted classifier."""

    def __init__(
        self, folder: Path, *, size: int, positions: int, pad_id: int, classes: int, threads: int | None = None
    ) -> None:
        """folder: written by `write_ctranslate2`; size: vocabulary size. Raises UserError if a file is broken."""
        self.positions, self.pad_id, self.classes = positions, pad_id, classes
        self._encoder = open_model(ctranslate2.Encoder, folder, threads)
        try:
            with np.load(folder / HEAD) as head:
                self._head = {name: head[name] for name in head.files}
        except (ValueError, OSError, BadZipFile) as error:
            raise UserError(f"{folder / HEAD} cannot be read ({error}): run `dvc repro` to convert it again") from error
        self._pooling = str(self._head["pooling"])
        self._cls = [size] if self._pooling == "cls" else []

    def logits(self, token_ids: Ids) -> Floats:
        """Return the logits (B, K) of token_ids (B, S), padded at the end."""
        real = token_ids != self.pad_id
        rows = [[*self._cls, *row[kept].tolist()] for row, kept in zip(token_ids, real, strict=True)]
        states = np.asarray(self._encoder().forward_batch(rows).last_hidden_state)
        shown = np.arange(states.shape[1]) < np.array([len(row) for row in rows])[:, None]
        logits: Floats = self._pooled(states, shown[:, :, None]) @ self._head["weight"].T + self._head["bias"]
        return logits

    def _pooled(self, states: Floats, real: NDArray[np.bool_]) -> Floats:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding, where states are undefined."""
        pooled: Floats
        if self._pooling == "mean":
            pooled = np.where(real, states, 0).sum(axis=1) / real.sum(axis=1)
        elif self._pooling == "max":
            pooled = np.where(real, states, -np.inf).max(axis=1)
        elif self._pooling == "attention":
            hidden = np.tanh(states @ self._head["hidden_weight"].T + self._head["hidden_bias"])
            scores = np.where(real, (hidden @ self._head["score"])[:, :, None], -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            pooled = (weights / weights.sum(axis=1, keepdims=True) * np.where(real, states, 0)).sum(axis=1)
        else:
            pooled = states[:, 0]
        return pooled
