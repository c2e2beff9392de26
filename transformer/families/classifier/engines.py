"""Scorers of converted classifiers: CTranslate2 and ONNX Runtime."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.data.store import Ids
from transformer.families.classifier.classifier import ClassificationParams, Classifier, Scorer
from transformer.inference.sessions import open_ctranslate2, open_onnx, read_parts

HEAD = "head.npz"
Floats = NDArray[np.floating[Any]]


class CTranslate2Scorer:
    """A `Scorer` that runs a converted classifier."""

    def __init__(
        self, folder: Path, *, size: int, positions: int, pad_id: int, classes: int, threads: int | None = None
    ) -> None:
        """folder: written by `write_ctranslate2`; size: vocabulary size. Raises UserError if a file is broken."""
        self.positions, self.pad_id, self.classes = positions, pad_id, classes
        self._encoder = open_ctranslate2("Encoder", folder, threads)
        try:
            with np.load(folder / HEAD) as head:
                self._head = {name: head[name] for name in head.files}
            self._pooling = str(self._head["pooling"])
            if len(self._head["weight"]) != classes or not np.isfinite(self._head["weight"]).all():
                raise ValueError(f"its weights are not finite, or not of {classes} classes")
        except (KeyError, TypeError, ValueError, OSError, BadZipFile) as error:
            raise UserError(f"{folder / HEAD} cannot be read ({error}): run `dvc repro` to convert it again") from error
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


class OnnxScorer:
    """A `Scorer` that runs the classifier's ONNX graph."""

    def __init__(self, folder: Path, *, positions: int, pad_id: int, classes: int, threads: int | None) -> None:
        """folder: contains classifier.onnx. Raises UserError if it is missing or broken."""
        self.positions, self.pad_id, self.classes = positions, pad_id, classes
        self._session = open_onnx(folder / "classifier.onnx", threads)

    def logits(self, token_ids: Ids) -> NDArray[np.floating[Any]]:
        """Return the logits (B, K) of token_ids (B, S), padded at the end."""
        (logits,) = self._session().run(["logits"], {"ids": token_ids})
        found: NDArray[np.floating[Any]] = logits
        return found


def open_converted(task: Task, folder: Path, config: dict[str, Any], threads: int | None) -> Classifier:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    params = validate(ClassificationParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config, "text")
    vocabulary = vocabularies["text"]
    pad_id, classes = vocabulary.pad_id, len(task.classes)
    if config["engine"].startswith("onnx"):
        scorer: Scorer = OnnxScorer(
            folder / "model", positions=positions, pad_id=pad_id, classes=classes, threads=threads
        )
    else:
        scorer = CTranslate2Scorer(
            folder / "model", size=vocabulary.size, positions=positions, pad_id=pad_id, classes=classes, threads=threads
        )
    return Classifier(scorer, vocabulary, folder, params, task.classes)


def best_engine(config: dict[str, Any], available: list[str]) -> str:
    """Return the fastest engine that predicts as `evaluate` did. config: the bundle's; available: other than torch."""
    return next((name for name in ("onnx", "ctranslate2") if name in available), "torch")
