"""Noun phrases and pronouns, and how each is said in both languages."""

from dataclasses import dataclass
from typing import Literal, Protocol

from transformer.tasks.translation.sample import morphology
from transformer.tasks.translation.sample.lexicon import Adjective, Noun, Phrase
from transformer.tasks.translation.sample.morphology import Case, Column, Declension

Article = Literal["definite", "indefinite", "none"]
Pair = tuple[str, str]
"""A combination that may be held out: adjective and noun, or verb and object, by their German dictionary forms."""

_QUANTITY_WITH_ENDING = ("einige", "mehrere", "viele")


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun of the third person in its forms."""

    nominative: str
    accusative: str
    possessive: str
    en_subject: str
    en_object: str
    en_possessive: str


_GERMAN: dict[Column, tuple[str, str, str]] = {
    "m": ("er", "ihn", "sein"),
    "f": ("sie", "sie", "ihr"),
    "n": ("es", "es", "sein"),
    "p": ("sie", "sie", "ihr"),
}
_ENGLISH = {
    "he": ("he", "him", "his"),
    "she": ("she", "her", "her"),
    "it": ("it", "it", "its"),
    "they": ("they", "them", "their"),
}


class Nominal(Protocol):
    """Anything that can be the subject or the object of a clause."""

    @property
    def plural(self) -> bool:
        """Whether the verb is in the plural."""
        ...

    @property
    def known(self) -> bool:
        """Definite: German then puts it ahead of the adverbs."""
        ...

    def german(self, case: Case) -> str:
        """The phrase in German, in a case."""
        ...

    def english(self, case: Case) -> str:
        """The phrase in English."""
        ...

    def pairs(self) -> list[Pair]:
        """The combinations in it that may be held out."""
        ...


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what comes before it and what follows it (`mit einem Hut`, a relative clause)."""

    noun: Noun
    article: Article = "indefinite"
    adjective: Adjective | None = None
    plural: bool = False
    quantity: Phrase | None = None
    owner: Pronoun | None = None
    after: Phrase | None = None
    after_pairs: tuple[Pair, ...] = ()

    @property
    def column(self) -> Column:
        """The column of the declension tables."""
        return "p" if self.plural else self.noun.column

    @property
    def known(self) -> bool:
        """Whether it has a definite article or an owner."""
        return self.article == "definite" or self.owner is not None

    def pairs(self) -> list[Pair]:
        """The combinations in it that may be held out."""
        own = [(self.adjective.de, self.noun.de)] if self.adjective else []
        return [*own, *self.after_pairs]

    def pronoun(self) -> Pronoun:
        """The pronoun for this phrase: German uses grammatical gender, English the noun's meaning."""
        tags = self.noun.tags
        if self.plural:
            natural = "they"
        elif tags.isdisjoint(("people", "relative")):
            natural = "it"
        else:
            natural = "she" if self.noun.column == "f" or "she" in tags else "he"
        return Pronoun(*_GERMAN[self.column], *_ENGLISH[natural])

    def german(self, case: Case) -> str:
        """The phrase in German, in a case."""
        determiner, declension = self._german_determiner(case)
        words = [determiner] if determiner else []
        if self.adjective:
            words.append(morphology.adjective(self.adjective.stem, declension, case, self.column))
        number: Literal["singular", "plural"] = "plural" if self.plural else "singular"
        words.append(morphology.noun(self.noun.de, self.noun.plural, self.noun.weak, case, number))
        return " ".join(words) + (f" {self.after.de}" if self.after else "")

    def _german_determiner(self, case: Case) -> tuple[str, Declension]:
        if self.owner:
            return morphology.ein_word(self.owner.possessive, case, self.column), "mixed"
        if self.quantity:
            inflected = case == "dat" and self.quantity.de in _QUANTITY_WITH_ENDING
            return self.quantity.de + ("n" if inflected else ""), "strong"
        if self.article == "definite":
            return morphology.definite(case, self.column), "weak"
        if self.article == "none" or self.plural or self.noun.mass:
            return "", "strong"
        return morphology.ein_word("ein", case, self.column), "mixed"

    def english(self, case: Case) -> str:
        """The phrase in English."""
        noun = self.noun.en_plural if self.plural else self.noun.en
        core = f"{self.adjective.en} {noun}" if self.adjective else noun
        after = f" {self.after.en}" if self.after else ""
        if self.owner:
            return f"{self.owner.en_possessive} {core}{after}"
        if self.quantity:
            return f"{self.quantity.en} {core}{after}"
        if self.article == "definite":
            return f"the {core}{after}"
        if self.article == "none" or self.plural or self.noun.mass:
            return core + after
        return morphology.english_indefinite(core) + after


@dataclass(frozen=True)
class PronounPhrase:
    """A pronoun as subject or object."""

    pronoun: Pronoun
    plural: bool = False
    known: bool = True

    def german(self, case: Case) -> str:
        """The phrase in German, in a case."""
        return self.pronoun.nominative if case == "nom" else self.pronoun.accusative

    def english(self, case: Case) -> str:
        """The phrase in English."""
        return self.pronoun.en_subject if case == "nom" else self.pronoun.en_object

    def pairs(self) -> list[Pair]:
        """The combinations in it that may be held out."""
        return []
