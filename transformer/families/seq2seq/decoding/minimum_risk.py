"""Minimum Bayes risk decoding (Kumar and Byrne 2004): of a beam, the hypothesis that most of it agrees with."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.generation.interface import Hypothesis

Floats = NDArray[np.float64]
_BLEU_ORDERS = 4
_CHRF_ORDERS = 6
_CHRF_BETA = 2


def chosen(found: list[Hypothesis], target: Vocabulary, params: DecodingParams) -> list[Hypothesis]:
    """The `n_best` hypotheses to answer with: the first, or those with the most expected utility.

    found: the `candidates` of a source, the best score first. The expectation of a hypothesis' utility is over all of
    them as references, each with its probability to the power of `mbr_scale`. Those without an end rank last: their
    probabilities are of beginnings. Scores stay those of the search.
    """
    if not params.reranks:
        return found[: params.n_best]
    ended = [each for each in found if each.finished]
    candidates = ended or found
    logits = params.mbr_scale * np.array([each.log_probability for each in candidates])
    weights = np.exp(logits - logits.max())
    expected = _UTILITIES[params.mbr_utility](candidates, target) @ (weights / weights.sum())
    ranked = [candidates[place] for place in np.argsort(-expected, kind="stable")]
    return [*ranked, *(each for each in found if ended and not each.finished)][: params.n_best]


def bleu(sequences: Sequence[tuple[int, ...]]) -> Floats:
    """The BLEU of each sequence (rows) with each as the reference (columns), (K, K), between 0 and 1.

    Counts of 2- to 4-grams have 1 added (Lin and Och 2004), or most sentences would have none of some length.
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
    """As `bleu`, the chrF of texts (Popović 2015): the F-score of n-grams of 1 to 6 characters, without spaces."""
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
    """The n-grams that each two sequences have in common, (K, K), and how many each has, (K,)."""
    numbers: dict[str | tuple[int, ...], int] = {}
    ngrams = [
        [numbers.setdefault(each[start : start + order], len(numbers)) for start in range(len(each) - order + 1)]
        for each in sequences
    ]
    counts = np.array([np.bincount(np.array(each, dtype=np.int64), minlength=len(numbers)) for each in ngrams])
    matches = [np.minimum(row, counts).sum(axis=1) for row in counts]
    return np.array(matches, dtype=np.float64), counts.sum(axis=1).astype(np.float64)


def _bleu_of_pieces(candidates: Sequence[Hypothesis], target: Vocabulary) -> Floats:
    return bleu([tuple(each.ids) for each in candidates])


def _chrf_of_texts(candidates: Sequence[Hypothesis], target: Vocabulary) -> Floats:
    return chrf([target.decode(each.ids) for each in candidates])


_UTILITIES: Mapping[str, Callable[[Sequence[Hypothesis], Vocabulary], Floats]] = {
    "bleu": _bleu_of_pieces,
    "chrf": _chrf_of_texts,
}
