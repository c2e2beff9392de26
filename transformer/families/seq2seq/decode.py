"""Decoding of source batches with greedy search, beam search or sampling."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids, padded, sorted_batches
from transformer.data.vocabulary import Vocabulary, clip
from transformer.inference.decode import Rows, decode, search
from transformer.inference.search import Generator, Hypothesis, SearchParams, Sources
from transformer.inference.stepwise import best_first


class DecodingParams(SearchParams):
    """How translations are generated."""

    max_length_ratio: float | None = Field(gt=0)
    """If set, the length is also limited to ceil(ratio * source tokens) + max_length_extra."""
    max_length_extra: int = Field(ge=0)
    """Tokens added to `max_length_ratio` times the source tokens."""
    long_sources: Literal["cut", "split", "refuse"]
    """Sources longer than the model's positions: truncate, translate in parts (sentences where they fit), or fail."""
    mbr_utility: Literal["none", "bleu", "chrf"]
    """Minimum Bayes risk decoding (Kumar and Byrne 2004) for `beam`: answer with the hypothesis of highest expected
    utility among all beam_size ones, instead of the best score; the utility is sentence BLEU on tokens or chrF on text.
    `n_best` follows that order, and `stopping` waits for beam_size hypotheses."""
    mbr_scale: float = Field(ge=0, le=100)
    """Exponent of the hypothesis probabilities in that expectation; 0 weights all equally."""

    @property
    def reranks(self) -> bool:
        """True if hypotheses are chosen by expected utility."""
        return self.mbr_utility != "none" and self.method == "beam" and self.beam_size > 1

    @property
    def candidates(self) -> int:
        """Number of hypotheses that the search returns."""
        return self.beam_size if self.reranks else self.n_best

    def limit(self, source_tokens: int, positions: int) -> int:
        """Return the maximum number of target tokens for a sentence, at least 1; positions: of the model."""
        limit = min(self.max_length, positions - 1)
        if self.max_length_ratio is not None:
            limit = min(limit, math.ceil(self.max_length_ratio * source_tokens) + self.max_length_extra)
        return max(limit, 1)


Floats = NDArray[np.float64]
_BLEU_ORDERS = 4
_CHRF_ORDERS = 6
_CHRF_BETA = 2
_DIGITS = 12  # the last bits of a matrix product depend on the BLAS library


def chosen(found: list[Hypothesis], target: Vocabulary, params: DecodingParams) -> list[Hypothesis]:
    """Return `n_best` hypotheses: the first ones, or those with the highest expected utility.

    found: the `candidates` of a source, best score first. A hypothesis' utility is averaged over all of them as
    references, including itself, weighted by their probability to the power of `mbr_scale`; ties keep their order.
    Unfinished hypotheses rank last, as their probabilities are those of prefixes. Scores remain the search's.
    """
    if not params.reranks:
        return found[: params.n_best]
    ended = [each for each in found if each.finished]
    candidates = ended or found
    rest = [each for each in found if not each.finished] if ended else []
    logits = params.mbr_scale * np.array([each.log_probability for each in candidates])
    weights = np.exp(logits - logits.max())
    if params.mbr_utility == "bleu":
        utilities = bleu([tuple(each.ids) for each in candidates])
    else:
        utilities = chrf([target.decode(each.ids) for each in candidates])
    np.fill_diagonal(utilities, 1.0)  # both formulas give 0 for two empty texts
    expected = utilities @ (weights / weights.sum())
    order = np.argsort(-expected.round(_DIGITS), kind="stable")
    return [*(candidates[place] for place in order), *rest][: params.n_best]


def bleu(sequences: Sequence[tuple[int, ...]]) -> Floats:
    """Return the sentence BLEU (K, K) of each sequence (rows) against each as reference (columns), between 0 and 1.

    Counts of 2- to 4-grams are smoothed by adding 1 (Lin and Och 2004), as most sentences have no match of some order.
    """
    lengths = np.array([len(each) for each in sequences], dtype=np.float64)
    logs = np.zeros((len(sequences), len(sequences)))
    for order in range(1, _BLEU_ORDERS + 1):
        matches, counts = _overlaps(sequences, order)
        added = int(order > 1)
        with np.errstate(divide="ignore"):
            logs += np.log((matches + added) / np.maximum(counts[:, None] + added, 1)) / _BLEU_ORDERS
    brevity = np.minimum(0.0, 1 - lengths / np.maximum(lengths[:, None], 1))
    scores: Floats = np.exp(logs + brevity)
    return scores


def chrf(texts: Sequence[str]) -> Floats:
    """Return the chrF (K, K) of each text (rows) against each as reference (columns) (Popović 2015).

    The F-score of character 1- to 6-grams, ignoring spaces.
    """
    written = ["".join(text.split()) for text in texts]
    precision, recall, orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(1, _CHRF_ORDERS + 1):
        matches, counts = _overlaps(written, order)
        precision += matches / np.maximum(counts[:, None], 1)
        recall += matches / np.maximum(counts, 1)
        orders += (counts[:, None] > 0) & (counts > 0)
    weight = _CHRF_BETA**2
    scores: Floats = (1 + weight) * precision * recall / np.maximum(weight * precision + recall, 1e-16)
    return scores / np.maximum(orders, 1)


def _overlaps(sequences: Sequence[str] | Sequence[tuple[int, ...]], order: int) -> tuple[Floats, Floats]:
    """Return the number of n-grams that each pair of sequences shares, (K, K), and that each has, (K,)."""
    numbers: dict[str | tuple[int, ...], int] = {}
    ngrams = [
        [numbers.setdefault(each[start : start + order], len(numbers)) for start in range(len(each) - order + 1)]
        for each in sequences
    ]
    counts = np.array([np.bincount(np.array(each, dtype=np.int64), minlength=len(numbers)) for each in ngrams])
    matches = [np.minimum(row, counts).sum(axis=1) for row in counts]
    return np.array(matches, dtype=np.float64), counts.sum(axis=1).astype(np.float64)


def fit_sources(
    sources: Sequence[Ids],
    positions: int,
    policy: str,
    vocabulary: Vocabulary | None,
    *,
    numbers: Sequence[int] | None = None,
) -> tuple[list[Ids], list[int]]:
    """Return sources of at most `positions` ids, each with the index of its original source.

    policy: `cut` truncates; `split` makes parts of similar length, each between begin and end token, at the ends of
    sentences, else between words, else anywhere; `refuse` raises UserError with the text's number, counted from 1.
    vocabulary: of the sources; None: parts begin at any token.
    """
    fitting: list[Ids] = []
    owners: list[int] = []
    for index, source in enumerate(sources):
        if len(source) > positions and policy == "refuse":
            number = (index if numbers is None else numbers[index]) + 1
            raise UserError(
                f"text {number} has {len(source)} tokens and the model {positions} positions: shorten the text, or set"
                " evaluate.long_sources to `split` or `cut`"
            )
        parts = _split(source, positions, vocabulary) if policy == "split" else [clip(source, positions)]
        fitting += parts
        owners += [index] * len(parts)
    return fitting, owners


def _split(source: Ids, positions: int, vocabulary: Vocabulary | None) -> list[Ids]:
    if len(source) <= positions:
        return [source]
    inner, size, start = source[1:-1], positions - 2, 0
    ranks = vocabulary.breaks(inner) if vocabulary else np.zeros(len(inner) + 1)
    stops = []
    while (rest := len(inner) - start) > size:
        even = start + -(-rest // -(-rest // size))  # the end of the next part if all had the same length
        start = max(range(start + 1, start + size + 1), key=lambda stop: (ranks[stop], -abs(stop - even)))
        stops.append(start)
    return [np.concatenate((source[:1], part, source[-1:])) for part in np.split(inner, stops)]


def joined(parts: Sequence[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the hypotheses of a source's parts: the first of each part concatenated, then the second, ...

    Scores and log probabilities are summed. A part with fewer hypotheses repeats its last one.
    """
    if len(parts) == 1:
        return parts[0]
    ranks = max(len(found) for found in parts)
    return [_concatenated([found[min(rank, len(found) - 1)] for found in parts]) for rank in range(ranks)]


def _concatenated(hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    return Hypothesis(
        [token for hypothesis in hypotheses for token in hypothesis.ids],
        sum(hypothesis.score for hypothesis in hypotheses),
        sum(hypothesis.log_probability for hypothesis in hypotheses),
        all(hypothesis.finished for hypothesis in hypotheses),
    )


class TranslationSearch(Protocol):
    """Yields the hypotheses of each batch, in order, such as from other processes."""

    def __call__(self, batches: Iterable[Sources], params: DecodingParams) -> Iterator[list[list[Hypothesis]]]:
        """params: of the translation."""


def translate(
    model: Generator,
    sources: Sequence[Ids],
    target: Vocabulary,
    params: DecodingParams,
    observer: Observer,
    *,
    vocabulary: Vocabulary | None = None,
    numbers: Sequence[int] | None = None,
    searched: TranslationSearch | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source, in source order, independent of the batch size.

    sources: ids between begin and end token. vocabulary: of the sources, as in `fit_sources`. numbers: the sources'
    numbers, which seed sampling; default: their indices.
    searched: replaces `model` in this process, such as to search in others. Each source has `n_best` hypotheses, or
    fewer if no more exist. Raises UserError if `long_sources` is `refuse` and a source has more ids than the model has
    positions.
    """
    positions = model.positions
    fitting, owners = fit_sources(sources, positions, params.long_sources, vocabulary, numbers=numbers)
    seeds = _seeds(owners, numbers)
    batches = sorted_batches(np.array([len(source) for source in fitting], dtype=np.int64), params.batch_size)

    def batch(rows: Rows) -> Sources:
        return Sources(
            padded([fitting[row] for row in rows], model.source_pad_id),
            first=np.full(len(rows), target.begin_id),
            limits=[params.limit(len(fitting[row]) - 2, positions) for row in rows],
            seeds=[seeds[row] for row in rows],
        )

    def here(given: Iterable[Sources]) -> Iterator[list[list[Hypothesis]]]:
        return (search_batch(model, each, target, params) for each in given)

    results = decode(batches, batch, here if searched is None else partial(searched, params=params), observer)
    parts: list[list[list[Hypothesis]]] = [[] for _ in sources]
    for owner, hypotheses in zip(owners, results, strict=True):
        parts[owner].append(hypotheses)
    whole = [joined(found) for found in parts]
    return [best_first(found) for found in whole] if params.method == "sample" and not params.reranks else whole


def search_batch(
    model: Generator, batch: Sources, target: Vocabulary, params: DecodingParams
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source of a batch, best first; samples in drawing order.

    Thus the samples of a split source join samples of its parts, not the best of each part.
    """
    hypotheses = search(model, batch, target, params.model_copy(update={"n_best": params.candidates}))
    return [chosen(best_first(found) if params.reranks else found, target, params) for found in hypotheses]


class Search:
    """A `Decoder` that runs our search on a generator."""

    knows_stopping = True

    def __init__(
        self, generator: Generator, source: Vocabulary, target: Vocabulary, searched: TranslationSearch | None = None
    ) -> None:
        """source, target: the vocabularies; searched: as in `translate`."""
        self.generator, self.source, self.target, self.searched = generator, source, target, searched

    @property
    def positions(self) -> int:
        """Maximum source length, in tokens."""
        return self.generator.positions

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source; arguments as in `translate`."""
        more: dict[str, Any] = {"vocabulary": self.source, "numbers": numbers, "searched": self.searched}
        return translate(self.generator, sources, self.target, params, observer, **more)


def _seeds(owners: Sequence[int], numbers: Sequence[int] | None) -> list[tuple[int, ...]]:
    """Return the sampling seed of each part: its source's number, plus the part's number from the second part on."""
    seeds: list[tuple[int, ...]] = []
    part = 0
    for index, owner in enumerate(owners):
        part = part + 1 if index and owners[index - 1] == owner else 0
        number = owner if numbers is None else numbers[owner]
        seeds.append((number, part) if part else (number,))
    return seeds
