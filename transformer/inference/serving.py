"""Answer a server's requests for one bundle, with the requested engine."""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from typing import Any

import transformer
from transformer.core.errors import UserError
from transformer.core.observer import check_deadline, time_limit
from transformer.inference.bundle import config_of, engines_of

MOST_TEXTS = 2_000
"""Texts of a request."""
MOST_HYPOTHESES = 16_000
"""Texts of a request times the width of the beam, which the memory grows with."""
BEST = "best"
"""The fastest available engine that answers as `evaluate` did."""
DETAILS = "details"
"""The request parameter that asks for more than the answer."""


class Serving:
    """A bundle and the models converted from it, each opened by the first request that needs it.

    Requests may come from several threads: their answers are those that they get one after another.
    """

    def __init__(self, bundle: Path, seconds: float = math.inf) -> None:
        """seconds: timeout of a request. Raises UserError when the folder is not a bundle."""
        self._seconds = seconds
        self._bundle, (self._config, self._task) = bundle, config_of(bundle)
        self._engines = engines_of(bundle)
        self._models: dict[str, Any] = {}
        self._opening, self._torch = Lock(), Lock()

    def table(self, texts: Sequence[str], params: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the answers as columns. params: `engine`, `details`, and those named by `Family.request_params`.

        With `details`, one text's answer has a column of that name: what `Family.details` returns, the `engine` that
        answered, in how many `seconds`, and the `engines` to choose from.

        Raises UserError for more than can be answered, parameters that cannot be fulfilled and an answer that takes
        too long, and TypeError for a text that is not a string.
        """
        if len(texts) > MOST_TEXTS:
            raise UserError(f"{len(texts):,} texts, and a request can have at most {MOST_TEXTS:,}: ask in parts")
        with time_limit(self._seconds):
            return self._table(texts, params)

    def _table(self, texts: Sequence[str], params: Mapping[str, Any]) -> dict[str, list[Any]]:
        family = self._task.family
        config = family.requested(self._config, params)
        decoding = config.get("decoding", {})
        width = {"beam": decoding.get("beam_size"), "sample": decoding.get("n_best")}.get(decoding.get("method")) or 1
        if (count := width * len(texts)) > MOST_HYPOTHESES:
            raise UserError(
                f"{len(texts):,} texts with a beam of {width} are {count:,} hypotheses, and a request can have at most"
                f" {MOST_HYPOTHESES:,}: ask in parts, or for a narrower beam"
            )
        engine = params.get("engine") or BEST
        if engine == BEST:
            engine = family.best_engine(config, self._engines)
        model = self._model(engine)
        with self._torch if engine == "torch" else nullcontext():  # the other engines are thread-safe
            check_deadline()
            started = time.monotonic()
            table = family.answer(model, config, texts)
            seconds = time.monotonic() - started
        if params.get(DETAILS):
            if len(texts) > 1:
                raise UserError(f"`{DETAILS}` are of one text at a time, not of {len(texts):,}")
            shown = {"engine": engine, "seconds": seconds, "engines": [BEST, "torch", *self._engines]}
            with self._torch:
                given = (family.details(model, lambda: self._model("torch"), config, text) for text in texts)
                table[DETAILS] = [shown | each for each in given]
        return table

    def _model(self, engine: str) -> Any:
        with self._opening:
            if engine not in self._models:
                self._models[engine] = transformer.load(self._bundle, engine=engine)
            return self._models[engine]
