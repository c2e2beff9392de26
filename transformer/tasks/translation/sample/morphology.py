"""Inflection: German articles, adjectives and nouns; English articles, plurals and verb forms."""

import re
from typing import Literal

Case = Literal["nom", "acc", "dat"]
Column = Literal["m", "f", "n", "p"]
"""A gender, or the plural, which has no gender."""
Declension = Literal["weak", "mixed", "strong"]

_COLUMNS = "mfnp"
_DEFINITE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
_EIN_ENDINGS = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}
_ADJECTIVE_ENDINGS = {
    "weak": {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"},
    "mixed": {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"},
    "strong": {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"},
}
_CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "an das": "ans",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
}
_DOUBLED = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
_PRESENT = {"be": ("is", "are"), "have": ("has", "have")}


def _cell(table: dict[str, str], case: Case, column: Column) -> str:
    return table[case].split()[_COLUMNS.index(column)]


def definite(case: Case, column: Column) -> str:
    """The definite article; it is also the relative pronoun, except in the dative plural."""
    return _cell(_DEFINITE, case, column)


def ein_word(stem: str, case: Case, column: Column) -> str:
    """`ein`, `kein` or a possessive (`sein`, `ihr`) with its ending."""
    return stem + _cell(_EIN_ENDINGS, case, column).strip("-")


def adjective(stem: str, declension: Declension, case: Case, column: Column) -> str:
    """An attributive adjective: weak after der, mixed after ein-words, strong where no article shows the case."""
    return stem.removesuffix("e") + _cell(_ADJECTIVE_ENDINGS[declension], case, column)


def noun(singular: str, plural: str, weak: bool, case: Case, number: Literal["singular", "plural"]) -> str:
    """A noun in its case.

    The dative plural adds -n, except after -n and -s; a weak masculine has its plural form outside the nominative.
    """
    if number == "singular":
        return plural if weak and case != "nom" else singular
    return plural + "n" if case == "dat" and plural[-1] not in "ns" else plural


def contract(phrase: str) -> str:
    """Join a preposition and a definite article at the start of a phrase: `in dem Park` gives `im Park`."""
    preposition, article, *rest = phrase.split(" ")
    joined = _CONTRACTIONS.get(f"{preposition} {article}")
    return " ".join([joined, *rest]) if joined else phrase


def english_plural(word: str) -> str:
    """The regular plural of an English noun."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search(r"(s|x|z|ch|sh)$", word) else "s")


def english_indefinite(phrase: str) -> str:
    """`a` or `an` in front of a phrase, by its first letter: no word of the lexicon needs more than that."""
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def english_present(base: str, *, plural: bool) -> str:
    """The simple present of the third person."""
    if base in _PRESENT:
        return _PRESENT[base][plural]
    if plural:
        return base
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + ("es" if re.search(r"(s|x|z|ch|sh|o)$", base) else "s")


def english_ing(base: str) -> str:
    """The present participle."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe")):
        return base[:-1] + "ing"
    return base + (base[-1] if _DOUBLED.fullmatch(base) else "") + "ing"
