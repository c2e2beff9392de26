"""Minimum Bayes risk decoding (Kumar and Byrne 2004): choose the hypothesis with the highest expected utility."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.generation.interface import Hypothesis

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
