"""Metrics of over-translation, under-translation and repetition."""

import math
from collections import Counter
from collections.abc import Sequence

Tokens = Sequence[str]
_OVER, _UNDER = 2, 4  # the longest n-grams of OTEM-2 and UTEM-4
_LONGEST_REPEATED = 4
_DIGITS = 6


def adequacy_figures(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute over-translation, under-translation and repetition, all 0 at best; texts are space-separated tokens."""
    split = [text.split() for text in hypotheses], [text.split() for text in references]
    figures = {
        "over_translation": over_translation(*split),
        "under_translation": under_translation(*split),
        "repetition": repetition(*split),
    }
    return {name: round(value, _DIGITS) for name, value in figures.items()}


def over_translation(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Compute OTEM-2 (Yang et al. 2018): 1- and 2-grams beyond their count in the reference, and beyond the first.

    The geometric mean of their fractions of all n-grams of the hypotheses, times exp(1 - r/h) if the hypotheses have
    more tokens (h) than the references (r).
    """
    excess, total = [0] * _OVER, [0] * _OVER
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, _OVER + 1):
            own, given = _ngrams(hypothesis, n), _ngrams(reference, n)
            excess[n - 1] += sum(max(count - max(given[ngram], 1), 0) for ngram, count in own.items())
            total[n - 1] += own.total()
    return _mean(excess, total) * _penalty(longer=hypotheses, shorter=references)


def under_translation(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Compute UTEM-4 (Yang et al. 2018): 1- to 4-grams of the reference that are missing from the hypothesis.

    The geometric mean of their fractions of all n-grams of the references, times exp(1 - h/r) if the hypotheses have
    fewer tokens (h) than the references (r). A word that is translated differently counts as missing.
    """
    missing, total = [0] * _UNDER, [0] * _UNDER
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, _UNDER + 1):
            own, given = _ngrams(hypothesis, n), _ngrams(reference, n)
            missing[n - 1] += (given - own).total()
            total[n - 1] += given.total()
    return _mean(missing, total) * _penalty(longer=references, shorter=hypotheses)


def repetition(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Return the fraction of hypotheses that immediately repeat 1 to 4 tokens that the reference does not repeat."""
    found = sum(
        bool(_repeated(hypothesis) - _repeated(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    return found / max(len(hypotheses), 1)


def _repeated(tokens: Tokens) -> set[tuple[str, ...]]:
    return {
        tuple(tokens[start : start + n])
        for n in range(1, _LONGEST_REPEATED + 1)
        for start in range(len(tokens) - 2 * n + 1)
        if tokens[start : start + n] == tokens[start + n : start + 2 * n]
    }


def _ngrams(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def _mean(part: Sequence[int], whole: Sequence[int]) -> float:
    """Return the geometric mean of the fractions, ignoring orders that no sentence is long enough for."""
    shares = [a / b for a, b in zip(part, whole, strict=True) if b]
    return math.prod(shares) ** (1 / len(shares)) if shares else 0.0


def _penalty(*, longer: Sequence[Tokens], shorter: Sequence[Tokens]) -> float:
    long, short = sum(map(len, longer)), sum(map(len, shorter))
    return math.exp(1 - short / long) if long > short else 1.0
