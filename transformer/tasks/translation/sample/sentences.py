"""The patterns of whole sentences: one main clause, or several clauses joined."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from transformer.tasks.translation.sample import modifiers, verbs
from transformer.tasks.translation.sample.actions import Action, kind_of, owns
from transformer.tasks.translation.sample.clauses import Clause, Front
from transformer.tasks.translation.sample.draws import Draw, spots
from transformer.tasks.translation.sample.lexicon import Phrase, Verb, nouns_with, phrase_table, verb_table
from transformer.tasks.translation.sample.morphology import definite
from transformer.tasks.translation.sample.phrases import NounPhrase, Pair, PronounPhrase

CIRCUMSTANCES = phrase_table(modifiers.CIRCUMSTANCES)
PERCEIVING = verb_table(verbs.PERCEIVING)
STANDING = Verb("stehen", "", "steht", "stand", "")
LYING = Verb("liegen", "", "liegt", "lie", "")
TRYING = Verb("versuchen", "", "versucht", "try", "")


@dataclass(frozen=True)
class Sentence:
    """One sentence in both languages and the combinations it contains."""

    de: str
    en: str
    pairs: tuple[Pair, ...]


def _sentence(de: str, en: str, *clauses: Clause) -> Sentence:
    """Add the capital letter and the full stop."""
    pairs = tuple(pair for clause in clauses for pair in clause.pairs())
    return Sentence(de[0].upper() + de[1:] + ".", en[0].upper() + en[1:] + ".", pairs)


class Grammar:
    """Draws sentences from a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.draw = Draw(rng)
        self.act = Action(self.draw)

    def sentence(self) -> Sentence:
        """One sentence with a random pattern."""
        return self.draw.one(_PATTERNS)(self)

    def _who(self) -> NounPhrase:
        return self.draw.animal() if self.draw.chance(25) else self.draw.person()

    def _other(self, first: NounPhrase) -> NounPhrase:
        while True:
            phrase = self._who()
            if phrase.noun.de != first.noun.de:
                return phrase

    def _named(self) -> NounPhrase:
        """A subject that a pronoun can refer to, without anything after its noun."""
        while True:
            phrase = self._who()
            if not phrase.after and (phrase.plural or "unnamed" not in phrase.noun.tags):
                return phrase

    def _adverbs(self, clause: Clause) -> Clause:
        placed = self.act.scene(clause) if self.draw.chance(45) else clause
        return self.act.when(placed) if self.draw.chance(45) else placed

    def plain(self) -> Sentence:
        """One clause, with the subject, the time or the place in front."""
        clause = self._adverbs(self.act.any(self._who()))
        if not clause.habit and self.draw.chance(20):
            clause = self.act.modal(clause)
        front: Front = self.draw.one(("subject", "subject", "time", "place"))
        return _sentence(clause.main(front), clause.english(front), clause)

    def while_other(self) -> Sentence:
        """Two things at once; the clause with `während` first or last."""
        subject = self._named()
        clause = self.act.any(subject)
        if self.draw.chance(50) and owns(subject):
            other = self.draw.relative(subject.pronoun())
        else:
            other = self._other(subject)
        second = self.act.any(other)
        if self.draw.chance(30) and not other.owner:
            de = f"während {second.final()}, {clause.inverted()}"
            return _sentence(de, f"while {second.english()}, {clause.english()}", second, clause)
        de = f"{clause.main()}, während {second.final()}"
        return _sentence(de, f"{clause.english()} while {second.english()}", clause, second)

    def reason(self) -> Sentence:
        """`weil` or `obwohl` with a state, a wish or the weather."""
        subject = self._named()
        clause = self.act.any(subject)
        german, english = self.draw.one((("weil", "because"), ("weil", "because"), ("obwohl", "although")))
        again = PronounPhrase(subject.pronoun(), subject.plural)
        kind = self.draw.rng.randrange(3)
        if kind == 0:
            then = self.draw.one(CIRCUMSTANCES)
            de = f"{clause.main()}, {german} {then.de}"
            return _sentence(de, f"{clause.english()} {english} {then.en}", clause)
        second = self.act.being(again)
        if kind == 1:
            second = self.act.modal(self.act.any(again, kind_of(subject)))
        if self.draw.chance(25):
            named, pronoun = replace(second, subject=subject), replace(clause, subject=again)
            de = f"{german} {named.final()}, {pronoun.inverted()}"
            return _sentence(de, f"{english} {named.english()}, {pronoun.english()}", named, pronoun)
        de = f"{clause.main()}, {german} {second.final()}"
        return _sentence(de, f"{clause.english()} {english} {second.english()}", clause, second)

    def perception(self) -> Sentence:
        """`Ein Mann sieht, dass ...`."""
        subject = self.draw.person()
        first = Clause(subject, self.draw.one(PERCEIVING))
        second = self.act.any(self._other(subject))
        if self.draw.chance(30):
            second = self.act.scene(second)
        de = f"{first.main()}, dass {second.final()}"
        return _sentence(de, f"{first.english()} that {second.english()}", first, second)

    def attempt(self) -> Sentence:
        """`Ein Hund versucht, den Ball zu fangen`."""
        subject = self._who()
        second = self.act.acting(subject, kind_of(subject))
        trying = Clause(subject, TRYING)
        pairs = second.pairs()
        de = f"{trying.main()}, {second.infinitive()}"
        bare = replace(trying, extra_pairs=tuple(pair for pair in pairs if pair not in subject.pairs()))
        return _sentence(de, f"{trying.english()} to {second.english_bare()}", bare)

    def subject_relative(self) -> Sentence:
        """`Ein Mann, der einen Hut trägt, wartet auf den Bus`."""
        subject = self._named()
        inner = self.act.any(subject)
        pronoun = definite("nom", subject.column)
        english = "who" if kind_of(subject) == "people" else "that"
        after = Phrase(f", {pronoun} {inner.final('')},", f"{english} {inner.english(subject='')}")
        outer = self.act.any(replace(subject, after=after))
        de = outer.main().replace(" ,", ",")
        return _sentence(de, outer.english(), inner, outer)

    def object_relative(self) -> Sentence:
        """`Ein Junge hebt einen Ball auf, der unter dem Tisch liegt`: German ends its clause first."""
        clause = self.act.acting(self.draw.person(), "people")
        thing = clause.objects[0][1]
        if not isinstance(thing, NounPhrase) or thing.owner or thing.noun.tags.isdisjoint(_LOCATED):
            return self.plain()
        pronoun = definite("nom", thing.column)
        living = not thing.noun.tags.isdisjoint(("people", "animal"))
        second = self._whereabouts(thing) if not living else self.act.any(thing)
        relative = "who" if "people" in thing.noun.tags else "that"
        de = f"{clause.main()}, {pronoun} {second.final('')}"
        return _sentence(de, f"{clause.english()} {relative} {second.english(subject='')}", clause, second)

    def _whereabouts(self, thing: NounPhrase) -> Clause:
        tags = thing.noun.tags
        standing = not tags.isdisjoint(("container", "furniture", "vehicle", "plant"))
        small = not tags.isdisjoint(_SMALL)
        place, pairs = self.draw.at(spots("top", "seat" if standing else "cloth") if small else spots("outside"))
        return Clause(thing, STANDING if standing else LYING, complement=place, extra_pairs=tuple(pairs))

    def thing_first(self) -> Sentence:
        """`Auf dem Tisch liegt ein Apfel`: the place first, the subject last."""
        standing = self.draw.chance(50)
        tags = ("container", "car", "bike") if standing else ("food", "reading", "toy", "clothing")
        noun = self.draw.one(nouns_with(*tags))
        thing = self.draw.object(noun)
        place, pairs = self.draw.at(spots("place") if "vehicle" in noun.tags else spots("top", "cloth", "seat", "room"))
        clause = Clause(thing, STANDING if standing else LYING, place=place, extra_pairs=tuple(pairs))
        return _sentence(clause.main("place"), clause.english(), clause)

    def sequence(self) -> Sentence:
        """`Eine Frau hebt einen Ball auf und wirft ihn in den See`: a pronoun of the object's gender."""
        subject = self.draw.person()
        clause = self.act.acting(subject, "people")
        thing = clause.objects[0][1]
        if not isinstance(thing, NounPhrase) or thing.plural or thing.noun.tags.isdisjoint(_HANDLED):
            return self.plain()
        options = [verb for tag in _HANDLED if tag in thing.noun.tags for verb in _HANDLED[tag] if verb != clause.verb]
        verb = self.draw.one(options)
        again = PronounPhrase(thing.pronoun())
        pairs: tuple[Pair, ...] = ((verb.de, thing.noun.de),)
        second = Clause(subject, verb, (("acc", again),), extra_pairs=pairs)
        de = f"{clause.main()} und {second.continued()}"
        joined = second.english_joined() if clause.verb.progressive else second.english(subject="")
        return _sentence(de, f"{clause.english()} and {joined}", clause, second)

    def contrast(self) -> Sentence:
        """Two main clauses with `und` or `aber`."""
        german, english = self.draw.one(((" und", " and"), (", aber", ", but")))
        subject = self._who()
        first, second = self.act.any(subject), self.act.any(self._other(subject))
        de = f"{first.main()}{german} {second.main()}"
        return _sentence(de, f"{first.english()}{english} {second.english()}", first, second)


def _handling(*names: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in verb_table(verbs.PEOPLE_ACTING) if verb.de in names)


_HANDLED = {
    "clothing": _handling("aufhängen", "einpacken", "waschen"),
    "thing": _handling("aufheben", "mitnehmen", "verkaufen", "aufhängen"),
    "toy": _handling("aufheben", "mitnehmen", "suchen", "einpacken"),
    "fruit": _handling("schälen", "schneiden", "essen", "aufessen", "waschen"),
    "reading": _handling("vorlesen", "einpacken", "ansehen"),
    "animal": _handling("streicheln", "füttern", "ansehen", "mitnehmen", "fotografieren"),
    "vehicle": _handling("waschen", "abstellen", "reparieren", "fotografieren"),
    "people": _handling("umarmen", "begrüßen", "ansehen", "anrufen"),
}

_SMALL = ("thing", "toy", "food", "reading", "clothing", "natural", "paper", "container")
_LOCATED = (*_SMALL, "people", "animal", "furniture", "vehicle", "plant")
_PATTERNS: tuple[Callable[[Grammar], Sentence], ...] = (
    *(Grammar.plain,) * 7,
    *(Grammar.while_other,) * 2,
    *(Grammar.reason,) * 2,
    Grammar.perception,
    Grammar.attempt,
    Grammar.subject_relative,
    Grammar.object_relative,
    Grammar.thing_first,
    *(Grammar.sequence,) * 2,
    Grammar.contrast,
)
