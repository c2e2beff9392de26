"""Converted language models: CTranslate2 and ONNX Runtime."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnxruntime import OrtValue

from transformer.core.errors import UserError
from transformer.core.validation import validate
from transformer.data.store import Ids
from transformer.families.language.interface import mask_id
from transformer.families.language.model import LanguageModel, never_generated
from transformer.families.language.scoring import AnswerParams, Engine, Floats
from transformer.inference.bundle import MODEL
from transformer.inference.search import Blocked, Generator
from transformer.inference.sessions import Opened, open_ctranslate2, open_onnx, read_parts
from transformer.inference.stepwise import best

_PLACES = 2048  # positions whose distributions are in memory at a time

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class Sizes(NamedTuple):
    """Model properties that an engine needs besides the weights."""

    causal: bool
    positions: int
    pad_id: int
    mask_id: int
    never: tuple[int, ...]
    """Tokens that are never generated."""


class ConvertedEngine(ABC):
    """Base of engines that score whole texts. Unless it sets another generator, nothing is cached between steps."""

    def __init__(self, sizes: Sizes) -> None:
        self.causal, self.positions, self.pad_id, self.mask_id, _ = sizes
        self.generator: Generator = UncachedGenerator(self, sizes.never)

    @abstractmethod
    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""

    @abstractmethod
    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """Return log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,)."""
        length = token_ids.shape[1]
        texts = max(1, _PLACES // length)
        values, best = np.empty(len(places), dtype=np.float32), np.empty(len(places), dtype=np.int64)
        for start in range(0, len(token_ids), texts):
            inside = np.flatnonzero((places >= start * length) & (places < (start + texts) * length))
            if len(inside):
                part = token_ids[start : start + texts]
                found = self.log_probabilities(part, places[inside] - start * length)
                values[inside] = found[np.arange(len(inside)), targets[inside]]
                best[inside] = found.argmax(axis=1)
        return values, best


class _Texts:
    """The texts so far."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        self.ids = self.ids[rows]


class UncachedGenerator:
    """A `Generator` on top of an engine."""

    def __init__(self, engine: Engine, never: tuple[int, ...]) -> None:
        """never: tokens that are never generated."""
        self._engine, self._never = engine, list(never)
        self.positions, self.source_pad_id = engine.positions, engine.pad_id

    def start(self, source_ids: Ids) -> _Texts:
        """Start from prompts (B, T) of equal length. Returns the state for the first step."""
        return _Texts(source_ids)

    def best(self, last: Ids, cache: _Texts, count: int, blocked: Blocked | None) -> tuple[Floats, Ids]:
        """Return the `count` largest log probabilities after `last` (B,), and their tokens, (B, count) each."""
        return best(self.log_probabilities(last, cache, blocked), count)

    def log_probabilities(self, last: Ids, cache: _Texts, blocked: Blocked | None) -> Floats:
        """Return log probabilities (B, V) of the token after `last` (B,), -inf for those never generated or blocked."""
        cache.ids = np.concatenate((cache.ids, last[:, None]), axis=1)
        places = np.arange(1, len(last) + 1) * cache.ids.shape[1] - 1
        return allowed(self._engine.log_probabilities(cache.ids, places), self._never, blocked)


def allowed(found: Floats, never: list[int], blocked: Blocked | None) -> Floats:
    """Renormalise log probabilities (B, V) in place without the tokens `never`, then set blocked ones to -inf."""
    found[:, never] = -np.inf
    found -= np.log(np.exp(found.astype(np.float64)).sum(axis=1, keepdims=True)).astype(found.dtype)
    if blocked is not None:
        found[blocked] = -np.inf
    return found


@dataclass
class _Cache:
    """Keys and values by graph input name; selections are applied in the next step."""

    past: dict[str, OrtValue]
    rows: Ids
    """Rows of the last step that the next one continues."""

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        self.rows = self.rows[rows]


class OnnxContinuation:
    """A `Generator` that runs a graph with cached keys and values (`onnx_model`)."""

    def __init__(
        self, session: "Opened[InferenceSession]", *, positions: int, pad_id: int, never: tuple[int, ...]
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
        inputs = _values(given) | cache.past
        found, *made = self._session().run_with_ort_values(["log_probabilities", *self._present], inputs)
        cache.past = dict(zip(self._past, made, strict=True))
        cache.rows = np.arange(len(ids))
        result: Floats = found.numpy()
        return result


def past_of(session: "Opened[InferenceSession]") -> dict[str, Floats]:
    """Return an empty past by graph input name; an empty dict if the graph has no past."""
    given = {each.name: each.shape for each in session().get_inputs() if each.name.startswith("past.")}
    return {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in given.items()}


def _values(arrays: dict[str, Any]) -> dict[str, OrtValue]:
    return {name: OrtValue.ortvalue_from_numpy(value) for name, value in arrays.items()}


class OnnxEngine(ConvertedEngine):
    """An `Engine` that runs the model's ONNX graph."""

    def __init__(self, folder: Path, sizes: Sizes, *, threads: int | None) -> None:
        """folder: contains language_model.onnx. Raises UserError if it is missing or broken."""
        super().__init__(sizes)
        self._session = open_onnx(folder / "language_model.onnx", threads)
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
            given |= {"rows": np.zeros(len(token_ids), dtype=np.int64)}
        return given


class CTranslate2Engine(ConvertedEngine):
    """An `Engine` that runs a converted causal model."""

    def __init__(self, folder: Path, sizes: Sizes, *, threads: int | None) -> None:
        """folder: written by `write_ctranslate2`. Raises UserError if it is missing or broken."""
        super().__init__(sizes)
        self._model = open_ctranslate2("Generator", folder, threads)

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""
        real = [row[row != self.pad_id].tolist() for row in token_ids]
        found = np.asarray(self._model().forward_batch(real, return_log_probs=True))
        row, column = np.divmod(places, token_ids.shape[1])
        result: Floats = found[row, column]
        return result

    def states(self, token_ids: Ids) -> Floats:
        """Raise UserError: CTranslate2 returns no hidden states."""
        raise UserError("CTranslate2 gives no states of a causal model: embed with the engine onnx or torch")


CAUSAL = "causal"
"""Key among the model sizes in config.json: true if the model predicts next tokens."""


def open_converted(folder: Path, config: dict[str, Any], threads: int | None) -> LanguageModel:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    params = validate(AnswerParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config, "text")
    vocabulary = vocabularies["text"]
    if not isinstance(config[MODEL].get(CAUSAL), bool):
        raise UserError(f"{folder / 'config.json'} lacks what the model predicts: run `dvc repro` to convert it again")
    sizes = Sizes(config[MODEL][CAUSAL], positions, vocabulary.pad_id, mask_id(vocabulary), never_generated(vocabulary))
    if config["engine"].startswith("onnx"):
        engine: Engine = OnnxEngine(folder / "model", sizes, threads=threads)
    else:
        engine = CTranslate2Engine(folder / "model", sizes, threads=threads)
    return LanguageModel(engine, vocabulary, folder, params)
