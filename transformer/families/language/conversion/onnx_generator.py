"""Generation with a causal ONNX model: each step reads one token and extends a key-value cache."""

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
    """Keys and values by graph input name; selections are applied in the next step."""

    past: dict[str, OrtValue]
    rows: Ids
    """Rows of the last step that the next one continues."""
    length: int = 0

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        self.rows = self.rows[rows]


class OnnxContinuation:
    """A `Generator` that runs a graph with cached keys and values (`onnx_model`)."""

    def __init__(
        self, session: Opened[onnxruntime.InferenceSession], *, positions: int, pad_id: int, never: tuple[int, ...]
    ) -> None:
        """never: tokens that are never generated."""
        self._session, self._never = session, list(never)
        self.positions, self.source_pad_id = positions, pad_id
        self._past = past_of(session)
        self._present = [name.replace("past.", "present.") for name in self._past]

    def start(self, source_ids: Ids) -> _Cache:
        """Read prompts (B, T) of equal length. Returns the cache for the first step."""
        cache = _Cache(_values(self._past), np.zeros(len(source_ids), dtype=np.int64))
        if source_ids.shape[1]:
            self._run(source_ids, np.empty(0, dtype=np.int64), cache)
        return cache

    def best(self, last: Ids, cache: _Cache, count: int, blocked: Blocked | None) -> tuple[Floats, Ids]:
        """Return the `count` largest log probabilities after `last` (B,), and their tokens, (B, count) each."""
        return best(self.log_probabilities(last, cache, blocked), count)

    def log_probabilities(self, last: Ids, cache: _Cache, blocked: Blocked | None) -> Floats:
        """Return log probabilities (B, V) of the token after `last` (B,), -inf for those never generated or blocked."""
        found = self._run(last[:, None], np.arange(len(last)), cache)
        return allowed(found, self._never, blocked)

    def _run(self, ids: Ids, places: Ids, cache: _Cache) -> Floats:
        """Append ids (B, S) to the cache. Returns the log probabilities (M, V) at places (M,) in them."""
        given = {"ids": np.ascontiguousarray(ids), "places": places, "rows": cache.rows}
        inputs = _values(given | {"place": np.array([cache.length])}) | cache.past
        found, *made = self._session().run_with_ort_values(["log_probabilities", *self._present], inputs)
        cache.past = dict(zip(self._past, made, strict=True))
        cache.rows = np.arange(len(ids))
        cache.length += ids.shape[1]
        result: Floats = found.numpy()
        return result


def past_of(session: Opened[onnxruntime.InferenceSession]) -> dict[str, Floats]:
    """Return an empty past by graph input name; an empty dict if the graph has no past."""
    given = {each.name: each.shape for each in session().get_inputs() if each.name.startswith("past.")}
    return {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in given.items()}


def _values(arrays: dict[str, Any]) -> dict[str, OrtValue]:
    return {name: OrtValue.ortvalue_from_numpy(value) for name, value in arrays.items()}
