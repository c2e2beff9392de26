"""A classifier over CTranslate2's encoder, without PyTorch: pooling and output layer are NumPy."""

from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from numpy.typing import NDArray

from transformer.conversion.cores import usable_cores
from transformer.core.errors import UserError
from transformer.encoded.batching import Ids

HEAD = "head.npz"
Floats = NDArray[np.floating[Any]]


class CTranslate2Scorer:
    """A converted classifier, as a `Scorer`."""

    def __init__(
        self, folder: Path, *, size: int, positions: int, pad_id: int, classes: int, threads: int | None = None
    ) -> None:
        """folder: written by `write_ctranslate2`; size: of the vocabulary. Raises UserError if one file is broken."""
        self.positions, self.pad_id, self.classes = positions, pad_id, classes
        try:
            self._encoder = ctranslate2.Encoder(
                str(folder), device="cpu", intra_threads=threads or usable_cores(), inter_threads=1
            )
            with np.load(folder / HEAD) as head:
                self._head = {name: head[name] for name in head.files}
        except (RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{folder} is not a readable CTranslate2 model ({reason}): run `dvc repro`") from error
        self._pooling = str(self._head["pooling"])
        self._cls = [size] if self._pooling == "cls" else []

    def logits(self, token_ids: Ids) -> Floats:
        """As `Scorer.logits`."""
        real = token_ids != self.pad_id
        rows = [[*self._cls, *row[kept].tolist()] for row, kept in zip(token_ids, real, strict=True)]
        states = np.asarray(self._encoder.forward_batch(rows).last_hidden_state)
        shown = np.arange(states.shape[1]) < np.array([len(row) for row in rows])[:, None]
        logits: Floats = self._pooled(states, shown[:, :, None]) @ self._head["weight"].T + self._head["bias"]
        return logits

    def _pooled(self, states: Floats, real: NDArray[np.bool_]) -> Floats:
        """States (B, S, C), real (B, S, 1): False on padding, where the states are anything. Returns (B, C)."""
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
