"""Random phrases: nouns with fitting adjectives, places, people and animals."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from transformer.tasks.translation.sample import modifiers
from transformer.tasks.translation.sample.lexicon import (
    Adjective,
    Noun,
    Phrase,
    Place,
    Verb,
    adjectives_for,
    nouns_with,
    phrase_table,
)
from transformer.tasks.translation.sample.morphology import Case, contract
from transformer.tasks.translation.sample.phrases import Article, NounPhrase, Pair, Pronoun

T = TypeVar("T")

QUANTITIES = phrase_table(modifiers.QUANTITIES)
SCENES = ("place", "water", "coast")
"""Tags of the nouns where people do things."""


@cache
def spots(*tags: str) -> tuple[tuple[Noun, Place], ...]:
    """Each noun with each of its prepositions of place."""
    return tuple((noun, place) for noun in nouns_with(*tags) for place in noun.places)


@cache
def goals(verb: Verb) -> tuple[tuple[Noun, Place], ...]:
    """Where a verb of motion can take things and people."""
    return tuple((noun, place) for noun, place in spots(*verb.goal_tags) if place.de in verb.goal_places)


class Draw:
    """Draws phrases from a random generator; the same generator state gives the same phrases."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, percent: int) -> bool:
        """True `percent` times in a hundred."""
        return self.rng.randrange(100) < percent

    def one(self, options: Sequence[T]) -> T:
        """Choose one of the options, all equally likely."""
        return self.rng.choice(options)

    def adjective(self, noun: Noun, percent: int) -> Adjective | None:
        """A fitting adjective, `percent` of the time."""
        fitting = adjectives_for(noun)
        return self.one(fitting) if fitting and self.chance(percent) else None

    def described(self, noun: Noun, article: Article, percent: int = 45) -> NounPhrase:
        """A noun in the singular, with an adjective `percent` of the time."""
        return NounPhrase(noun, article, self.adjective(noun, percent))

    def several(self, noun: Noun, percent: int = 45) -> NounPhrase:
        """A plural without an article: bare, or with a numeral or another quantity."""
        quantity = self.one(QUANTITIES) if self.chance(65) else None
        return NounPhrase(noun, "none", self.adjective(noun, percent), plural=True, quantity=quantity)

    def person(self) -> NounPhrase:
        """People as a subject: mostly one, sometimes with a garment or a bag."""
        noun = self.one(nouns_with("basic" if self.chance(45) else "people"))
        phrase = self._subject(noun)
        return self._dressed(phrase) if not phrase.plural and self.chance(20) else phrase

    def animal(self) -> NounPhrase:
        """An animal as a subject."""
        return self._subject(self.one(nouns_with("animal")))

    def _subject(self, noun: Noun) -> NounPhrase:
        kind = self.rng.randrange(100)
        if kind < 20:
            return self.several(noun)
        if kind < 27:
            return NounPhrase(noun, "definite", self.adjective(noun, 45), plural=True)
        return self.described(noun, "indefinite" if kind < 70 else "definite")

    def _dressed(self, phrase: NounPhrase) -> NounPhrase:
        """Add `mit einem roten Hut` or `in einem blauen Kleid`."""
        worn = self.chance(50)
        garment = self.described(self.one(nouns_with(*(("body",) if worn else ("hat", "luggage")))), "indefinite", 70)
        german, english = ("in", "in") if worn else ("mit", "with")
        after = Phrase(f"{german} {garment.german('dat')}", f"{english} {garment.english('dat')}")
        return replace(phrase, after=after, after_pairs=tuple(garment.pairs()))

    def object(self, noun: Noun, *, singular: bool = False, owner: Pronoun | None = None) -> NounPhrase:
        """An object: indefinite, definite, plural or the subject's own."""
        kind = self.rng.randrange(100)
        if noun.mass:
            return self.described(noun, "definite" if kind < 25 else "none", 60)
        if owner and kind < 15 and noun.tags.isdisjoint(("people", "place", "building")):
            return NounPhrase(noun, "none", self.adjective(noun, 40), owner=owner)
        if kind < 35 and not singular:
            return self.several(noun)
        return self.described(noun, "indefinite" if kind < 75 else "definite")

    def relative(self, owner: Pronoun) -> NounPhrase:
        """Somebody's brother, friend or aunt."""
        noun = self.one(nouns_with("relative"))
        return NounPhrase(noun, "none", self.adjective(noun, 20), owner=owner, plural=self.chance(15))

    def at(self, options: Sequence[tuple[Noun, Place]], case: Case = "dat") -> tuple[Phrase, list[Pair]]:
        """One place as a phrase: the dative says where, the accusative where to."""
        noun, place = self.one(options)
        definite = "unique" in noun.tags or self.chance(60)
        spot = self.described(noun, "definite" if definite else "indefinite", 40)
        english = place.where if case == "dat" else place.whither
        return Phrase(contract(f"{place.de} {spot.german(case)}"), f"{english} {spot.english(case)}"), spot.pairs()
