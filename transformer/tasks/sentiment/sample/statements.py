"""Statements about a film with a given polarity, which depends on how words are combined, not on the words alone.

A word of the opposite polarity with a negator says the same as a word of this polarity without one, so each opinion
word occurs in reviews of both labels.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from transformer.tasks.sentiment.sample import words

Polarity = Literal[-1, 1]
Pair = tuple[str, str]
"""A combination that may be held out: negator (or intensifier) and opinion word, or aspect and opinion word."""

T = TypeVar("T")

_TURNED_PERCENT = 33


@dataclass(frozen=True)
class Statement:
    """A clause without capital letter and full stop, and its combinations."""

    text: str
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What a statement is about, with its article."""

    text: str
    plural: bool = False

    @property
    def verbs(self) -> dict[str, str]:
        """The forms that templates ask for."""
        if self.plural:
            return {"s": self.text, "be": "are", "has": "have", "lack": "lack"}
        return {"s": self.text, "be": "is", "has": "has", "lack": "lacks"}


def items(table: str, separator: str | None = None) -> tuple[str, ...]:
    """A table's entries, separated by newlines and `separator` (None: whitespace); an underscore stands for a space."""
    lines = table.strip().splitlines()
    return tuple(entry.strip().replace("_", " ") for line in lines for entry in line.split(separator))


def _templates(table: str) -> tuple[tuple[str, str], ...]:
    lines = (line.split("|") for line in table.strip().splitlines())
    return tuple((key.strip(), text.strip()) for key, text in lines)


_Words = dict[Polarity, tuple[str, ...]]
_ADJECTIVES: _Words = {1: items(words.GOOD), -1: items(words.BAD)}
_ANYWHERE: _Words = {1: items(words.GOOD_ANYWHERE), -1: items(words.BAD_ANYWHERE)}
_NOUNS: _Words = {1: items(words.GOOD_NOUNS), -1: items(words.BAD_NOUNS)}
_QUALITIES: _Words = {1: items(words.GOOD_QUALITIES), -1: items(words.BAD_QUALITIES)}
_FEELINGS: _Words = {1: items(words.LIKING), -1: items(words.DISLIKING)}
_CLAIM_FORMS = (_templates(words.PLAIN_CLAIMS), _templates(words.TURNED_CLAIMS))
_NOUN_FORMS = (_templates(words.PLAIN_NOUNS), _templates(words.TURNED_NOUNS))
_QUALITY_FORMS = (_templates(words.PLAIN_QUALITIES), _templates(words.TURNED_QUALITIES))
_FEELING_FORMS = (_templates(words.PLAIN_FEELINGS), _templates(words.TURNED_FEELINGS))
_ASPECTS = (
    *(Subject(f"the {name}") for name in items(words.ASPECTS)),
    *(Subject(f"the {name}", plural=True) for name in items(words.PLURAL_ASPECTS)),
)
_WHOLES = tuple(Subject(f"the {name}") for name in items(words.WHOLES))

_Forms = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


def opposite(polarity: Polarity) -> Polarity:
    """The opposite polarity."""
    return -1 if polarity == 1 else 1


class Speaker:
    """Draws statements from a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, percent: int) -> bool:
        """True `percent` times in a hundred."""
        return self.rng.randrange(100) < percent

    def one(self, options: Sequence[T]) -> T:
        """Choose one of the options, all equally likely."""
        return self.rng.choice(options)

    def aspect(self) -> Subject:
        """A part of the film."""
        return self.one(_ASPECTS)

    def whole(self) -> Subject:
        """The film itself."""
        return self.one(_WHOLES)

    def _compose(self, polarity: Polarity, forms: _Forms, lexicon: _Words) -> tuple[str, str, tuple[str, ...]]:
        """A form's key and template, and the words that have the polarity in it."""
        turned = self.chance(_TURNED_PERCENT)
        key, template = self.one(forms[turned])
        return key, template, lexicon[opposite(polarity) if turned else polarity]

    def claim(self, subject: Subject, polarity: Polarity) -> Statement:
        """`the plot is far from dull`."""
        return self._claim(subject, polarity, _ADJECTIVES)

    def remark(self, subject: Subject) -> Statement:
        """A claim of any polarity about something other than the film: `the popcorn was far from perfect`."""
        return self._claim(subject, 1 if self.chance(50) else -1, _ANYWHERE)

    def _claim(self, subject: Subject, polarity: Polarity, lexicon: _Words) -> Statement:
        key, template, choices = self._compose(polarity, _CLAIM_FORMS, lexicon)
        first, second = self.rng.sample(choices, 2)
        said = [first, second] if "{b}" in template else [first]
        pairs = [(name, word) for word in said for name in (key, subject.text)]
        return Statement(template.format(a=first, b=second, **subject.verbs), tuple(pairs))

    def naming(self, polarity: Polarity) -> Statement:
        """`the film is hardly a masterpiece`."""
        subject = self.whole()
        key, template, choices = self._compose(polarity, _NOUN_FORMS, _NOUNS)
        word = self.one(choices)
        return Statement(template.format(n=f"a {word}", **subject.verbs), ((key, word), (subject.text, word)))

    def quality(self, polarity: Polarity) -> Statement:
        """`the dialogue lacks any charm`."""
        subject = self.aspect() if self.chance(50) else self.whole()
        key, template, choices = self._compose(polarity, _QUALITY_FORMS, _QUALITIES)
        word = self.one(choices)
        return Statement(template.format(q=word, **subject.verbs), ((key, word), (subject.text, word)))

    def feeling(self, polarity: Polarity) -> Statement:
        """`I never enjoyed the music`."""
        subject = self.aspect() if self.chance(50) else self.whole()
        key, template, choices = self._compose(polarity, _FEELING_FORMS, _FEELINGS)
        base, past = self.one(choices).split("/")
        return Statement(template.format(base=base, past=past, s=subject.text), ((key, base), (subject.text, base)))

    def opinion(self, polarity: Polarity) -> Statement:
        """One clause of any form."""
        kind = self.rng.randrange(10)
        if kind < 5:
            return self.claim(self.aspect() if self.chance(60) else self.whole(), polarity)
        if kind < 7:
            return self.naming(polarity)
        return self.quality(polarity) if kind < 9 else self.feeling(polarity)
