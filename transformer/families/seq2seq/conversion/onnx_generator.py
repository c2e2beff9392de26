"""Translation with our search on ONNX Runtime, without PyTorch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import OrtValue

from transformer.conversion.onnx_session import open_session
from transformer.encoded.batching import Ids
from transformer.generation.distribution import best
from transformer.generation.interface import Blocked

Floats = NDArray[np.floating[Any]]


@dataclass
class _Cache:
    """Keys and values by decoder input name; selections are applied in the next step."""

    source: dict[str, OrtValue]
    """Encoder outputs; each source's row is shared by `rows_per_source` adjacent hypotheses."""
    past: dict[str, OrtValue]
    rows: Ids
    """Rows of the last step that the next one continues."""
    length: int = 0
    rows_per_source: int = 1

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        owners = rows // self.rows_per_source
        changes = np.flatnonzero(np.diff(owners)) + 1
        counts = np.diff(np.concatenate(([0], changes, [len(owners)])))
        even = bool((counts == counts[0]).all())
        self.rows_per_source = int(counts[0]) if even else 1
        kept = owners[np.concatenate(([0], changes))] if even else owners
        if len(kept) != self.source["real"].shape()[0] or (np.diff(kept) != 1).any():
            self.source = _values({name: value.numpy()[kept] for name, value in self.source.items()})
        self.rows = self.rows[rows]


class OnnxGenerator:
    """A `Generator` that runs the ONNX encoder and decoder of a translation model."""

    def __init__(self, folder: Path, *, positions: int, source_pad_id: int, threads: int | None = None) -> None:
        """folder: contains encoder.onnx and decoder.onnx. Raises UserError if one is missing or broken."""
        self.positions, self.source_pad_id = positions, source_pad_id
        self._encoder = open_session(folder / "encoder.onnx", threads)
        self._decoder = open_session(folder / "decoder.onnx", threads)
        self._made = [output.name for output in self._encoder().get_outputs()]
        inputs, outputs = self._decoder().get_inputs(), self._decoder().get_outputs()
        self._size = next(int(each.shape[1]) for each in outputs if each.name == "log_probabilities")
        self._present = [each.name for each in outputs if each.name.startswith("present.")]
        self._past = {each.name: each.shape for each in inputs if each.name.startswith("past.")}

    def start(self, source_ids: Ids) -> _Cache:
        """Encode source_ids (B, S). Returns the cache for the first step."""
        made = self._encoder().run_with_ort_values(self._made, _values({"ids": source_ids}))
        none = {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in self._past.items()}
        return _Cache(
            dict(zip(self._made, made, strict=True)), _values(none), rows=np.zeros(len(source_ids), dtype=np.int64)
        )

    def best(self, last: Ids, cache: _Cache, count: int, blocked: Blocked | None) -> tuple[Floats, Ids]:
        """Return the `count` largest log probabilities after `last` (B,), and their tokens, (B, count) each."""
        if blocked is None:
            values, tokens = self._step(last, cache, ["values", "tokens"], count)
            return values, tokens
        return best(self.log_probabilities(last, cache, blocked), count)

    def log_probabilities(self, last: Ids, cache: _Cache, blocked: Blocked | None) -> Floats:
        """Return the log probabilities (B, V) of the next token after `last` (B,), -inf for blocked tokens."""
        found: Floats = self._step(last, cache, ["log_probabilities"], 1)[0]
        if blocked is not None:
            found[blocked] = -np.inf
        return found

    def _step(self, last: Ids, cache: _Cache, wanted: list[str], count: int) -> list[Any]:
        """Run one step and put the extended past into the cache; `wanted` names the other decoder outputs to return."""
        shown = np.array([min(count, self._size)])
        given = {"last": last, "place": np.array([cache.length]), "rows": cache.rows, "count": shown}
        inputs = _values(given) | cache.source | cache.past
        made = self._decoder().run_with_ort_values([*wanted, *self._present], inputs)
        cache.past = dict(zip(self._past, made[len(wanted) :], strict=True))
        cache.rows = np.arange(len(last))
        cache.length += 1
        return [value.numpy() for value in made[: len(wanted)]]


def _values(arrays: dict[str, Any]) -> dict[str, OrtValue]:
    return {name: OrtValue.ortvalue_from_numpy(value) for name, value in arrays.items()}
