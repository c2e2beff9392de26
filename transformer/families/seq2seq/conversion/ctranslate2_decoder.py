"""Translation with CTranslate2's own greedy and beam search, without PyTorch."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from transformer.conversion.ctranslate2_session import open_model
from transformer.core.errors import UserError
from transformer.core.observer import Observer, check_deadline
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.minimum_risk import chosen
from transformer.families.seq2seq.decoding.overlong import fit_sources, joined
from transformer.generation.interface import Hypothesis


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
        self._translator = open_model(ctranslate2.Translator, folder, threads)
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
        fitting, owners = fit_sources(sources, self.positions, params.long_sources, numbers=numbers)
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
