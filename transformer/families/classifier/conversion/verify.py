"""Comparison of a converted classifier with the exported one, on validation texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transformer.conversion.stage import TIE, require_close, require_quality
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.evaluation.bootstrap import Floats, bootstrap
from transformer.export.bundle import open_bundle
from transformer.export.converted import CONFIG, INT8
from transformer.families.classifier.decoding.labels import Classifier, class_logits, softmax

_BATCH = 64
_SAMPLES = 1000


class Verification:
    """The exported model's predictions, to compare converted models against."""

    def __init__(self, exported: Classifier, rows: Sequence[dict[str, str]], threads: int) -> None:
        """rows: of predictions.tsv."""
        self._rows, self._threads = rows, threads
        self.sequences = exported.encode([row["text"] for row in rows])
        self._labels = [row["label"] for row in rows]
        self._classes = exported.classes
        self._exported = _probabilities(exported, self.sequences)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than rounding (summation order)."""
        engine = read_json(folder / CONFIG)["engine"]
        opened = open_bundle(folder, threads=self._threads)
        assert isinstance(opened, Classifier)
        found = _probabilities(opened, self.sequences)
        figures: dict[str, float] = {"rows": len(self._rows)}
        figures |= require_close(engine, np.abs(found - self._exported).max(axis=1).tolist(), "probability")
        own, theirs = found.argmax(axis=1), self._exported.argmax(axis=1)
        other = np.flatnonzero(own != theirs)
        for number in other.tolist() if not engine.endswith(INT8) else []:
            probabilities = self._exported[number]
            if probabilities[theirs[number]] - probabilities[own[number]] > TIE:
                raise UserError(
                    f"{engine} calls {self._rows[number]['text'][:80]!r} {self._classes[own[number]]}, and the exported"
                    f" model {self._classes[theirs[number]]}: not written; leave this format out of convert.formats"
                )
        figures |= {"equal": len(self._rows) - len(other), "ties": 0 if engine.endswith(INT8) else len(other)}
        labels = np.array([self._classes.index(label) for label in self._labels])
        right = 100.0 * (own == labels), 100.0 * (theirs == labels)
        samples = _SAMPLES if engine.endswith(INT8) else 0
        lead = bootstrap(lambda weights: float(weights @ (right[0] - right[1])) / len(labels), len(labels), samples)
        return figures | require_quality(engine, "accuracy", float(right[0].mean()), float(right[1].mean()), lead)


def _probabilities(model: Classifier, sequences: Sequence[Ids]) -> Floats:
    return softmax(class_logits(model.scorer, sequences, batch_size=_BATCH, observer=Observer()))
