"""The tables as typed entries, and the choices that a noun's tags allow."""

from dataclasses import dataclass, replace
from functools import cache

from transformer.tasks.translation.sample import modifiers, nouns, places, verbs
from transformer.tasks.translation.sample.morphology import Column, english_plural


@dataclass(frozen=True)
class Phrase:
    """The same words in both languages."""

    de: str
    en: str


@dataclass(frozen=True)
class Place:
    """A preposition of place: the German word, and English for where (dative) and where to (accusative)."""

    de: str
    where: str
    whither: str


@dataclass(frozen=True)
class Noun:
    """A noun; `column` is its gender and `plural` is empty for a mass noun."""

    de: str
    column: Column
    plural: str
    weak: bool
    en: str
    en_plural: str
    tags: frozenset[str]
    places: tuple[Place, ...]

    @property
    def mass(self) -> bool:
        """Whether the noun has no plural and needs no article."""
        return not self.plural


@dataclass(frozen=True)
class Adjective:
    """An adjective: its dictionary form, the stem that takes endings, and the tags of its nouns."""

    de: str
    stem: str
    en: str
    tags: frozenset[str]


@dataclass(frozen=True)
class Verb:
    """A verb and its objects: their tags and, for a prepositional object, the preposition and its case."""

    infinitive: str
    particle: str
    third: str
    en: str
    en_particle: str
    progressive: bool = True
    plural_objects: bool = True
    tags: tuple[str, ...] = ()
    preposition: str = ""
    goal_places: tuple[str, ...] = ()
    goal_tags: tuple[str, ...] = ()

    @property
    def de(self) -> str:
        """The dictionary form, by which combinations are held out."""
        return self.particle + self.infinitive


_PLACES = {
    "in": Place("in", "in", "into"),
    "auf": Place("auf", "on", "onto"),
    "an": Place("an", "at", "to"),
    "unter": Place("unter", "under", "under"),
    "neben": Place("neben", "next to", "next to"),
    "vor": Place("vor", "in front of", "in front of"),
    "hinter": Place("hinter", "behind", "behind"),
}


def _columns(table: str, separator: str = "|") -> list[list[str]]:
    return [[cell.strip() for cell in line.split(separator)] for line in table.strip().splitlines()]


def _place(text: str) -> Place:
    de, _, english = text.partition("=")
    return Place(de, *english.split("/")) if english else _PLACES[de]


def _noun(words: str, tags: str, prepositions: str = "") -> Noun:
    de, gender, plural, en, *irregular = words.split()
    column: Column = "m" if gender[0] == "m" else "f" if gender[0] == "f" else "n"
    return Noun(
        de=de,
        column=column,
        plural=plural.strip("-"),
        weak=gender.endswith("*"),
        en=en,
        en_plural=irregular[0] if irregular else english_plural(en),
        tags=frozenset(tags.split()),
        places=tuple(_place(text) for text in prepositions.split()),
    )


def _compound(words: str, head: Noun, tags: str) -> Noun:
    """Join `Holz` (wooden) and `Bank` (bench) into `Holzbank`, `wooden bench`; the head decides gender and plural."""
    de, en = words.split()
    return replace(
        head,
        de=de + head.de.lower(),
        plural=de + head.plural.lower() if head.plural else "",
        en=f"{en} {head.en}",
        en_plural=f"{en} {head.en_plural}",
        tags=frozenset(tags.split()) or head.tags,
        places=() if tags else head.places,
    )


def _compounds(heads: tuple[Noun, ...]) -> tuple[Noun, ...]:
    first: dict[str, Noun] = {}
    for head in heads:
        first.setdefault(head.de, head)
    return tuple(
        _compound(words, first[name], "".join(tags))
        for words, names, *tags in _columns(places.COMPOUNDS)
        for name in names.split()
    )


def _nouns(*tables: str) -> tuple[Noun, ...]:
    return tuple(_noun(*columns) for table in tables for columns in _columns(table))


def _adjective(words: str, tags: str) -> Adjective:
    de, en = words.split()
    word, _, stem = de.partition(":")
    return Adjective(word, stem or word, en, frozenset(tags.split()))


def _verb(words: str, tags: str = "", prepositions: str = "", goals: str = "") -> Verb:
    *governs, infinitive, third, en = words.split()
    particle, _, stem = infinitive.rpartition("+")
    english, _, en_particle = en.lstrip("=").partition("/")
    return Verb(
        infinitive=stem,
        particle=particle,
        third=third,
        en=english.replace("_", " "),
        en_particle=en_particle,
        progressive=not en.startswith("="),
        plural_objects=not tags.startswith("!"),
        tags=tuple(tags.lstrip("! ").split()),
        preposition=" ".join(governs),
        goal_places=tuple(prepositions.split()),
        goal_tags=tuple(goals.split()),
    )


def verb_table(table: str) -> tuple[Verb, ...]:
    """The verbs of one table of `verbs`."""
    return tuple(_verb(*columns) for columns in _columns(table))


def phrase_table(table: str, separator: str = "|") -> tuple[Phrase, ...]:
    """Pairs of equivalent words, one per line; an underscore stands for a space."""
    return tuple(Phrase(de, en.replace("_", " ")) for de, en in _columns(table, separator))


_INANIMATE = _nouns(nouns.CLOTHES, nouns.THINGS, nouns.FOOD, places.VEHICLES, places.FURNITURE, places.PLACES)
NOUNS = (*_nouns(nouns.PEOPLE, nouns.RELATIVES, nouns.ANIMALS), *_INANIMATE, *_compounds(_INANIMATE))
ADJECTIVES = tuple(_adjective(*columns) for columns in _columns(modifiers.ADJECTIVES))
MODALS = tuple(tuple(columns) for columns in _columns(verbs.MODALS))


@cache
def nouns_with(*tags: str) -> tuple[Noun, ...]:
    """The nouns that have at least one of the tags, in the order of the tables."""
    return tuple(noun for noun in NOUNS if not noun.tags.isdisjoint(tags))


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that go with a noun; for a noun of two senses the first line of the table wins."""
    fitting = {entry.de: entry for entry in reversed(ADJECTIVES) if not entry.tags.isdisjoint(noun.tags)}
    return tuple(fitting[name] for name in sorted(fitting))
