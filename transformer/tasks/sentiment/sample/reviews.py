"""Whole reviews: sentences that carry the verdict, and irrelevant ones."""

import random
from dataclasses import dataclass

from transformer.tasks.sentiment.sample import words
from transformer.tasks.sentiment.sample.statements import Pair, Polarity, Speaker, Statement, Subject, items, opposite

_CRITICS = tuple(tuple(entry.split("/")) for entry in items(words.CRITICS, "|"))
"""A person with an opinion, and the pronoun for them."""
_ENDS = {1: items(words.GOOD_ENDS, "|"), -1: items(words.BAD_ENDS, "|")}
_SIDESHOWS = tuple(Subject(name) for name in items(words.SIDESHOWS, "|"))
_EVENTS = items(words.EVENTS, "|")
_REPLIES = {True: items(words.AGREEMENTS, "|"), False: items(words.DISAGREEMENTS, "|")}
_BALANCED_PERCENT = 3


@dataclass(frozen=True)
class Review:
    """A review and its combinations."""

    text: str
    pairs: tuple[Pair, ...]


def sentence(text: str) -> str:
    """Add the capital letter and the full stop."""
    return text[0].upper() + text[1:] + "."


class Reviewer:
    """Draws reviews from a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.say = Speaker(rng)

    def review(self, polarity: Polarity) -> Review:
        """Two to six sentences with one polarity: one to three that carry it, and irrelevant ones."""
        if self.say.chance(_BALANCED_PERCENT):
            return self._balanced(polarity)
        parts = [self._verdict(polarity) for _ in range(self.say.one((1, 2, 3, 3)))]
        if len(parts) == 1 or self.say.chance(30):
            parts.insert(self.rng.randrange(len(parts) + 1), self._aside())
        if self.say.chance(25):
            parts.insert(0, Statement(self._opening()))
        return _join(parts)

    def _balanced(self, polarity: Polarity) -> Review:
        """Equal praise and blame, then a last sentence about what the writer did."""
        first, second = self.say.claim(self.say.aspect(), 1), self.say.claim(self.say.aspect(), -1)
        sides = [first, second] if self.say.chance(50) else [second, first]
        parts = [Statement(sentence(side.text), side.pairs) for side in sides]
        return _join([*parts, Statement(sentence(f"in the end {self.say.one(_ENDS[polarity])}"))])

    def _verdict(self, polarity: Polarity) -> Statement:
        """One or two sentences with the polarity."""
        kind = self.rng.randrange(20)
        if kind < 14:
            opinion = self.say.opinion(polarity)
            return Statement(sentence(opinion.text), opinion.pairs)
        if kind < 18:
            return self._contrast(polarity)
        return self._reported(polarity) if kind < 19 else self._expected(polarity)

    def _contrast(self, polarity: Polarity) -> Statement:
        """A part of the film contrasted with the whole: the main clause decides."""
        minor = self.say.claim(self.say.aspect(), opposite(polarity))
        major = self.say.claim(self.say.whole(), polarity) if self.say.chance(60) else self.say.naming(polarity)
        form = self.say.one(
            (
                "although {minor}, {major}",
                "even though {minor}, {major}",
                "{major}, although {minor}",
                "{minor}, but {major}",
                "granted, {minor}, yet {major}",
            )
        )
        return Statement(sentence(form.format(minor=minor.text, major=major.text)), (*minor.pairs, *major.pairs))

    def _reported(self, polarity: Polarity) -> Statement:
        """Somebody's opinion and whether the writer shares it."""
        person, pronoun = self.say.one(_CRITICS)
        shared = self.say.chance(50)
        opinion = self.say.opinion(polarity if shared else opposite(polarity))
        reply = self.say.one(_REPLIES[shared]).format(p=pronoun)
        return Statement(f"{sentence(f'{person} says that {opinion.text}')} {sentence(reply)}", opinion.pairs)

    def _expected(self, polarity: Polarity) -> Statement:
        """What the writer expected, and whether it came true."""
        came = self.say.chance(50)
        opinion = self.say.claim(self.say.whole(), polarity if came else opposite(polarity))
        result = "that is exactly how it was" if came else "the opposite was true"
        return Statement(sentence(f"I had heard that {opinion.text}, and {result}"), opinion.pairs)

    def _aside(self) -> Statement:
        """An irrelevant sentence: an opinion about something else, or an event in the film."""
        if self.say.chance(65):
            return Statement(sentence(self._plot()))
        opinion = self.say.remark(self.say.one(_SIDESHOWS))
        return Statement(sentence(opinion.text), opinion.pairs)

    def _plot(self) -> str:
        one = self.say.one
        hero, event, place = one(items(words.HEROES)), one(_EVENTS), one(items(words.PLACES))
        return one((f"a {hero} goes to {place} and {event}", f"in {place}, a {hero} {event}"))

    def _opening(self) -> str:
        one = self.say.one
        company = one(items(words.COMPANIONS, "|"))
        occasion = one(items(words.OCCASIONS, "|"))
        genre, day = one(items(words.GENRES)), one(items(words.DAYS))
        return one((f"I saw this {genre} on {day} with {company}.", f"We watched the {genre} {occasion}."))


def _join(parts: list[Statement]) -> Review:
    return Review(" ".join(part.text for part in parts), tuple(pair for part in parts for pair in part.pairs))
