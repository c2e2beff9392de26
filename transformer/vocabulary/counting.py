"""Count words, optionally in several processes."""

from collections import Counter
from collections.abc import Iterable

from transformer.text.parallel import OrderedMap, chunks

_CHUNK = 2000  # texts counted at a time


def count_spaced(texts: Iterable[str], ordered_map: OrderedMap = map) -> Counter[str]:
    """Count the words between spaces, in order of first occurrence."""
    total: Counter[str] = Counter()
    for counts in ordered_map(_counted, chunks(texts, _CHUNK)):
        total.update(counts)
    return total


def _counted(texts: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.split(" "))
    return counts
