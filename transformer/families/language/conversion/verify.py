"""Compares a converted language model with the exported one, on validation texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.conversion.stage import require_close, require_quality
from transformer.core.files import read_json
from transformer.evaluation.bootstrap import Floats, bootstrap
from transformer.export.bundle import open_bundle
from transformer.export.converted import CONFIG, INT8
from transformer.families.language.decoding.detecting import detections
from transformer.families.language.decoding.predictor import LanguageModel
from transformer.families.language.decoding.scoring import TokenScores, each_token
from transformer.families.language.decoding.with_torch import TorchLanguageModel

_SAMPLES = 1000


class Verification:
    """The exported model's scores, and the comparison of converted models with them."""

    def __init__(self, exported: TorchLanguageModel, rows: Sequence[dict[str, str]], threads: int) -> None:
        """rows: of predictions.tsv."""
        self._texts, self._threads = [row["text"] for row in rows], threads
        self._exported = _scored(exported, self._texts)
        self._detected = _detected(exported, self._texts)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError where it differs by more than another order of sums."""
        engine = read_json(folder / CONFIG)["engine"]
        opened = open_bundle(folder, threads=self._threads)
        assert isinstance(opened, LanguageModel)
        found = _scored(opened, self._texts)
        pairs = list(zip(found, self._exported, strict=True))
        differences = [float(np.abs(a.log_probabilities - b.log_probabilities).max(initial=0.0)) for a, b in pairs]
        figures: dict[str, float] = {"rows": len(pairs)}
        figures |= require_close(engine, differences, "log probability of a token")
        figures |= {"equal": sum(np.array_equal(a.best, b.best) for a, b in pairs)}
        if self._detected:
            detected = zip(_detected(opened, self._texts), self._detected, strict=True)
            apart = [float(np.abs(a - b).max()) for a, b in detected if len(b)]
            close = require_close(engine, apart, "probability of a replaced token")
            figures |= {f"detection_{name}": value for name, value in close.items()}
        own, exported = (np.array([100.0 * each.right.sum() for each in scores]) for scores in (found, self._exported))
        tokens = np.array([float(len(each.right)) for each in self._exported])

        def lead(weights: Floats) -> float:
            return float(weights @ (own - exported) / max(weights @ tokens, 1))

        drawn = bootstrap(lead, len(pairs), _SAMPLES if engine.endswith(INT8) else 0)
        shares = [float(right.sum() / max(tokens.sum(), 1)) for right in (own, exported)]
        return figures | require_quality(engine, "accuracy", shares[0], shares[1], drawn)


def _scored(model: LanguageModel, texts: Sequence[str]) -> list[TokenScores]:
    return each_token(model.engine, model.encode(texts), model.decoding)


def _detected(model: LanguageModel, texts: Sequence[str]) -> list[NDArray[np.floating[Any]]]:
    """What the discriminator makes of each text; empty without one."""
    if not model.engine.detects:
        return []
    return [detections(model.engine, ids, model.decoding.batch_size) for ids in model.encode(texts)]
