"""Notes beside an answer: what was not read of its text, and where the answer stops short.

A note is one line, `WHAT` or `WHAT: DETAIL, DETAIL`; answers of the same kind have the same WHAT.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary

Notes = tuple[str, ...]
_DETAILS = 10  # shown
_MORE = "..."


def unknown_words(vocabulary: Vocabulary, text: str, ids: Ids) -> Iterator[str]:
    """Yield a note if ids, an encoded text or its beginning, have words or characters that the vocabulary lacks."""
    if words := vocabulary.unknown_words(text, ids):
        yield f"words that the vocabulary lacks: {_listed(words)}"


def in_column(notes: Notes) -> str:
    """Return notes as one value of a table."""
    return "; ".join(notes)


class Tally:
    """Counts the notes of many answers."""

    def __init__(self) -> None:
        self._texts = 0
        self._counts: Counter[str] = Counter()
        self._details: dict[str, dict[str, None]] = defaultdict(dict)

    def add(self, notes: Notes) -> None:
        """Count the notes of one text's answer."""
        self._texts += 1
        for note in notes:
            what, _, details = note.partition(": ")
            self._counts[what] += 1
            if len(self._details[what]) <= _DETAILS:
                self._details[what].update(dict.fromkeys(filter(None, details.split(", "))))

    def lines(self) -> Iterator[str]:
        """Yield one line for each kind of note, with the number of texts that it is of."""
        for what, count in self._counts.items():
            details = f": {_listed(self._details[what])}" if self._details[what] else ""
            yield f"{what}{details}" + (f" ({count:,} of {self._texts:,} texts)" if self._texts > 1 else "")


def _listed(words: dict[str, None]) -> str:
    shown = [word for word in words if word != _MORE]
    more = len(shown) > _DETAILS or len(shown) < len(words)
    return ", ".join([*shown[:_DETAILS], *([_MORE] if more else [])])
