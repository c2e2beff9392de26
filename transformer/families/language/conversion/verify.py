"""Comparison of a converted language model with the exported one, on validation texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transformer.conversion.stage import require_close, require_quality
from transformer.core.files import read_json
from transformer.evaluation.bootstrap import Floats, bootstrap
from transformer.export.bundle import open_bundle
from transformer.export.converted import CONFIG, INT8
from transformer.families.language.decoding.predictor import LanguageModel
from transformer.families.language.decoding.scoring import TokenScores, each_token
from transformer.families.language.decoding.with_torch import TorchLanguageModel

_SAMPLES = 1000


class Verification:
    """The exported model's scores, to compare converted models against."""

    def __init__(self, exported: TorchLanguageModel, rows: Sequence[dict[str, str]], threads: int) -> None:
        """rows: of predictions.tsv."""
        self._texts, self._threads = [row["text"] for row in rows], threads
        self._exported = _scored(exported, self._texts)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than rounding (summation order)."""
        engine = read_json(folder / CONFIG)["engine"]
        opened = open_bundle(folder, threads=self._threads)
        assert isinstance(opened, LanguageModel)
        found = _scored(opened, self._texts)
        pairs = list(zip(found, self._exported, strict=True))
        differences = [float(np.abs(a.log_probabilities - b.log_probabilities).max(initial=0.0)) for a, b in pairs]
        figures: dict[str, float] = {"rows": len(pairs)}
        figures |= require_close(engine, differences, "log probability of a token")
        figures |= {"equal": sum(np.array_equal(a.best, b.best) for a, b in pairs)}
        own, exported = (np.array([100.0 * each.right.sum() for each in scores]) for scores in (found, self._exported))
        tokens = np.array([float(len(each.right)) for each in self._exported])

        def lead(weights: Floats) -> float:
            return float(weights @ (own - exported) / max(weights @ tokens, 1))

        drawn = bootstrap(lead, len(pairs), _SAMPLES if engine.endswith(INT8) else 0)
        shares = [float(right.sum() / max(tokens.sum(), 1)) for right in (own, exported)]
        return figures | require_quality(engine, "accuracy", shares[0], shares[1], drawn)


def _scored(model: LanguageModel, texts: Sequence[str]) -> list[TokenScores]:
    return each_token(model.engine, model.encode(texts), model.decoding)
