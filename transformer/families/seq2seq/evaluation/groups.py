"""Scores by groups of similar sentences: strengths and weaknesses of a translator."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transformer.corpora.leakage import word_count, words
from transformer.families.seq2seq.evaluation.scores import Metric

_LENGTH_BINS = (8, 12, 16, 24)  # source words, upper ends; one more bin for longer sentences
_RARE = 5  # occurrences in training
_MANY = 2


class Group(NamedTuple):
    """A group of similar sentences, and its scores."""

    grouping: str
    """`source_length`, `rare_words` or `unknown_words`."""
    group: str
    sentences: int
    bleu: float
    chrf: float


def word_counts(sources: Iterable[str]) -> Counter[str]:
    """Count each word in the training sources."""
    return Counter(word for text in sources for word in words(text))


def groups(sources: Sequence[str], counts: Mapping[str, int], metrics: Mapping[str, Metric]) -> Iterator[Group]:
    """Yield BLEU and chrF by the source's number of words, rare words and unknown words, without empty groups.

    counts: word counts in training. A word is rare if training has it 1 to 5 times, and unknown if it never does,
    whatever the model's vocabulary. metrics: `bleu` and `chrf`.
    """
    occurrences = [[counts.get(word, 0) for word in words(text)] for text in sources]
    rare = [_few(sum(0 < count <= _RARE for count in row)) for row in occurrences]
    unknown = [_few(sum(count == 0 for count in row)) for row in occurrences]
    few = [_few(number) for number in range(_MANY + 1)]
    for grouping, names, order in (
        ("source_length", [_length(text) for text in sources], _length_names()),
        ("rare_words", rare, few),
        ("unknown_words", unknown, few),
    ):
        for name in order:
            rows = np.array([own == name for own in names], dtype=bool)
            if rows.any():
                yield Group(grouping, name, int(rows.sum()), metrics["bleu"].score(rows), metrics["chrf"].score(rows))


def _few(number: int) -> str:
    return str(number) if number < _MANY else f"{_MANY}+"


def _length_names() -> list[str]:
    starts = [1, *(end + 1 for end in _LENGTH_BINS)]
    return [*(f"{start}-{end}" for start, end in zip(starts, _LENGTH_BINS, strict=False)), f"{starts[-1]}+"]


def _length(text: str) -> str:
    return _length_names()[int(np.searchsorted(_LENGTH_BINS, word_count(text)))]
