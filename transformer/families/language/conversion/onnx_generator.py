"""A causal language model in ONNX as what generation needs: each step reads one token, and keeps what it has read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from transformer.conversion.opened import Opened
from transformer.encoded.batching import Ids
from transformer.families.language.conversion.uncached import allowed
from transformer.families.language.decoding.interface import Floats
from transformer.generation.distribution import best
from transformer.generation.interface import Blocked


@dataclass
class _Cache:
    """Keys and values by the names of the graph's inputs; selections are applied in the next step."""

    past: dict[str, OrtValue]
    rows: Ids
    """The texts of the last step that the next one continues."""
    length: int = 0

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        self.rows = self.rows[rows]


class OnnxContinuation:
    """A graph with a past (`onnx_model`), as a `Generator`."""

    def __init__(
        self, session: Opened[onnxruntime.InferenceSession], *, positions: int, pad_id: int, never: tuple[int, ...]
    ) -> None:
        """never: the tokens that are never generated."""
        self._session, self._never = session, list(never)
        self.positions, self.source_pad_id = positions, pad_id
        self._past = past_of(session)
        self._present = [name.replace("past.", "present.") for name in self._past]

    def start(self, source_ids: Ids) -> _Cache:
        """As `Generator.start`; the texts of a batch are equally long."""
        cache = _Cache(_values(self._past), np.zeros(len(source_ids), dtype=np.int64))
        if source_ids.shape[1]:
            self._run(source_ids, np.empty(0, dtype=np.int64), cache)
        return cache

    def best(self, last: Ids, cache: _Cache, count: int, blocked: Blocked | None) -> tuple[Floats, Ids]:
        """As `Generator.best`."""
        return best(self.log_probabilities(last, cache, blocked), count)

    def log_probabilities(self, last: Ids, cache: _Cache, blocked: Blocked | None) -> Floats:
        """As `Generator.log_probabilities`."""
        found = self._run(last[:, None], np.arange(len(last)), cache)
        return allowed(found, self._never, blocked)

    def _run(self, ids: Ids, places: Ids, cache: _Cache) -> Floats:
        """The log probabilities (M, V) at places (M,) of ids (B, S), which are added to the cache."""
        given = {"ids": np.ascontiguousarray(ids), "places": places, "rows": cache.rows}
        inputs = _values(given | {"place": np.array([cache.length])}) | cache.past
        found, *made = self._session().run_with_ort_values(["log_probabilities", *self._present], inputs)
        cache.past = dict(zip(self._past, made, strict=True))
        cache.rows = np.arange(len(ids))
        cache.length += ids.shape[1]
        result: Floats = found.numpy()
        return result


def past_of(session: Opened[onnxruntime.InferenceSession]) -> dict[str, Floats]:
    """An empty past by the names of the graph's inputs; none if the graph has none."""
    given = {each.name: each.shape for each in session().get_inputs() if each.name.startswith("past.")}
    return {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in given.items()}


def _values(arrays: dict[str, Any]) -> dict[str, OrtValue]:
    return {name: OrtValue.ortvalue_from_numpy(value) for name, value in arrays.items()}
