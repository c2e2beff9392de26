"""Generators of converted translation models: CTranslate2 and ONNX Runtime."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import OrtValue

from transformer.core.errors import UserError
from transformer.core.observer import Observer, check_deadline
from transformer.core.validation import validate
from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary
from transformer.families.seq2seq.decode import DecodingParams, Search, chosen, fit_sources, joined
from transformer.families.seq2seq.translator import Decoder, Translator
from transformer.inference.search import Blocked, Hypothesis
from transformer.inference.sessions import open_ctranslate2, open_onnx, read_parts
from transformer.inference.stepwise import best


def answers_as_ours(params: DecodingParams) -> bool:
    """True if CTranslate2 finds the same translations as our search, which holds only for greedy search.

    Its beam search stops once beam_size hypotheses have finished, and its n-gram blocking rescales the distribution.
    """
    greedy = params.method == "greedy" or (params.method == "beam" and params.beam_size == 1)
    return greedy and params.no_repeat_ngram is None


_IMPOSSIBLE = -5000.0
"""Log probability below which a hypothesis is padding: CTranslate2 fills a beam that runs out of
hypotheses with padding, at -1e4 per token."""
_BATCHES = 4
"""Batches per call; deadlines are checked between calls."""


class CTranslate2Decoder:
    """A `Decoder` that runs a converted translation model."""

    knows_stopping = False

    def __init__(
        self, folder: Path, source: Vocabulary, target: Vocabulary, *, positions: int, threads: int | None = None
    ) -> None:
        """folder: written by `write_ctranslate2`. Raises UserError if it is missing or broken."""
        self._translator = open_ctranslate2("Translator", folder, threads)
        self._source, self._target, self.positions = source, target, positions
        self._entries = target.tokenizer.get_vocab()

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, by CTranslate2's rules (see `answers_as_ours`).

        Each CTranslate2 call gets a few batches of sources with equal length limits. Raises UserError for `sample`.
        """
        if params.method == "sample":
            raise UserError("CTranslate2 cannot seed samples by sentence: use the engine onnx or torch")
        fitting, owners = fit_sources(sources, self.positions, params.long_sources, self._source, numbers=numbers)
        found: list[list[Hypothesis]] = [[] for _ in fitting]
        by_limit = defaultdict(list)
        for row, source in enumerate(fitting):
            by_limit[params.limit(len(source) - 2, self.positions)].append(row)
        for limit, rows in _calls(by_limit, fitting, _BATCHES * params.batch_size):
            check_deadline()
            tokens = [self._source.entries(fitting[row]) for row in rows]
            translator = self._translator()
            size = min(params.batch_size, -(-len(rows) // translator.num_translators))
            results = translator.translate_batch(tokens, max_batch_size=size, **self._options(params, limit))
            for row, result in zip(rows, results, strict=True):
                pairs = zip(result.hypotheses, result.scores, strict=True)
                all_found = [self._hypothesis(found, score, params) for found, score in pairs]
                hypotheses = [each for each in all_found if each.log_probability > _IMPOSSIBLE] or all_found[:1]
                if params.no_repeat_ngram:
                    hypotheses = self._rescored(fitting[row], hypotheses, params)
                if params.length_normalization == "gnmt" or params.no_repeat_ngram:  # sorted differently there
                    hypotheses.sort(key=lambda each: -each.score)
                found[row] = chosen(hypotheses, self._target, params)
        parts: list[list[list[Hypothesis]]] = [[] for _ in sources]
        for owner, hypotheses in zip(owners, found, strict=True):
            parts[owner].append(hypotheses)
        return [joined(each) for each in parts]

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log probability of each target token, including the end token, given the previous ones."""
        scored = self._translator().score_batch(
            [self._source.entries(source) for source in sources],
            [self._target.entries(target[1:-1]) for target in targets],
            max_batch_size=128,
            max_input_length=0,
        )
        return [list(result.log_probs) for result in scored]

    def _rescored(self, source: Ids, found: Sequence[Hypothesis], params: DecodingParams) -> list[Hypothesis]:
        """Rescore hypotheses with the model's log probabilities: CTranslate2 redistributes those of blocked n-grams."""
        begin, end = self._target.begin_id, self._target.end_id
        scored = self.forced([source] * len(found), [np.array([begin, *each.ids, end]) for each in found])
        rescored = []
        for each, tokens in zip(found, scored, strict=True):
            total = sum(tokens if each.finished else tokens[:-1])
            length = max(len(each.ids) + each.finished, 1)
            rescored.append(Hypothesis(each.ids, params.normalized(total, length), total, each.finished))
        return rescored

    def _options(self, params: DecodingParams, limit: int) -> dict[str, Any]:
        beams = params.beam_size if params.method == "beam" else 1
        lengths = params.length_penalty if beams > 1 and params.length_normalization == "length" else 0
        return {
            "beam_size": beams,
            "num_hypotheses": params.candidates,
            "length_penalty": lengths,
            "no_repeat_ngram_size": params.no_repeat_ngram or 0,
            "min_decoding_length": 0,
            "max_decoding_length": limit,
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
        }

    def _hypothesis(self, tokens: list[str], score: float, params: DecodingParams) -> Hypothesis:
        ids = [self._entries[token] for token in tokens]
        finished = bool(ids) and ids[-1] == self._target.end_id
        length = max(len(ids), 1)  # with the end token, as CTranslate2 counts
        divided = length**params.length_penalty if params.length_normalization == "length" else 1
        log_probability = score * divided if params.method == "beam" and params.beam_size > 1 else score
        return Hypothesis(
            ids[: len(ids) - finished], params.normalized(log_probability, length), log_probability, finished
        )


def _calls(by_limit: Mapping[int, list[int]], sources: Sequence[Ids], most: int) -> Iterator[tuple[int, list[int]]]:
    """Yield each limit with at most `most` rows of similar length."""
    for limit, rows in by_limit.items():
        rows.sort(key=lambda row: len(sources[row]))
        for start in range(0, len(rows), most):
            yield limit, rows[start : start + most]


Floats = NDArray[np.floating[Any]]


@dataclass
class _Cache:
    """Keys and values by decoder input name; selections are applied in the next step."""

    source: dict[str, OrtValue]
    """Encoder outputs; each source's row is shared by `rows_per_source` adjacent hypotheses."""
    past: dict[str, OrtValue]
    rows: Ids
    """Rows of the last step that the next one continues."""
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

    def __init__(self, folder: Path, *, positions: int, source_pad_id: int, threads: int | None) -> None:
        """folder: contains encoder.onnx and decoder.onnx. Raises UserError if one is missing or broken."""
        self.positions, self.source_pad_id = positions, source_pad_id
        self._encoder = open_onnx(folder / "encoder.onnx", threads)
        self._decoder = open_onnx(folder / "decoder.onnx", threads)
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
        given = {"last": last, "rows": cache.rows, "count": shown}
        inputs = _values(given) | cache.source | cache.past
        made = self._decoder().run_with_ort_values([*wanted, *self._present], inputs)
        cache.past = dict(zip(self._past, made[len(wanted) :], strict=True))
        cache.rows = np.arange(len(last))
        return [value.numpy() for value in made[: len(wanted)]]


def _values(arrays: dict[str, Any]) -> dict[str, OrtValue]:
    return {name: OrtValue.ortvalue_from_numpy(value) for name, value in arrays.items()}


def open_converted(folder: Path, config: dict[str, Any], threads: int | None) -> Translator:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    decoding = validate(DecodingParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config, "source", "target")
    source, target = vocabularies["source"], vocabularies["target"]
    if config["engine"].startswith("onnx"):
        generator = OnnxGenerator(folder / "model", positions=positions, source_pad_id=source.pad_id, threads=threads)
        decoder: Decoder = Search(generator, source, target)
    else:
        decoder = CTranslate2Decoder(folder / "model", source, target, positions=positions, threads=threads)
    return Translator(decoder, vocabularies, folder, decoding)


def best_engine(config: dict[str, Any], available: list[str]) -> str:
    """Return the fastest engine that predicts as `evaluate` did. config: the bundle's; available: other than torch."""
    decoding = validate(DecodingParams, config["decoding"], where="config.json", prefix="decoding")
    fitting = [name for name in ("ctranslate2", "onnx") if name != "ctranslate2" or answers_as_ours(decoding)]
    return next((name for name in fitting if name in available), "torch")
