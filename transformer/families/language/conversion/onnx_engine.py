"""Language modelling with ONNX Runtime, without PyTorch."""

from pathlib import Path
from typing import Any

import numpy as np

from transformer.conversion.onnx_session import open_session
from transformer.encoded.batching import Ids
from transformer.families.language.conversion.engine import ConvertedEngine, Sizes
from transformer.families.language.conversion.onnx_generator import OnnxContinuation, past_of
from transformer.families.language.decoding.interface import Floats


class OnnxEngine(ConvertedEngine):
    """An `Engine` that runs the model's ONNX graph."""

    def __init__(self, folder: Path, sizes: Sizes, *, threads: int | None = None) -> None:
        """folder: contains language_model.onnx. Raises UserError if it is missing or broken."""
        super().__init__(sizes)
        self._session = open_session(folder / "language_model.onnx", threads)
        self._past = past_of(self._session) if sizes.causal else {}
        if sizes.causal:
            self.generator = OnnxContinuation(
                self._session, positions=self.positions, pad_id=self.pad_id, never=sizes.never
            )

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""
        (found,) = self._session().run(["log_probabilities"], self._given(token_ids, places))
        result: Floats = found
        return result

    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""
        (found,) = self._session().run(["states"], self._given(token_ids, np.empty(0, dtype=np.int64)))
        result: Floats = found
        return result

    def _given(self, token_ids: Ids, places: Ids) -> dict[str, Any]:
        """Return the graph's inputs for whole texts."""
        given: dict[str, Any] = {"ids": token_ids, "places": places} | self._past
        if self._past:
            given |= {"place": np.zeros(1, dtype=np.int64), "rows": np.zeros(len(token_ids), dtype=np.int64)}
        return given
