"""Random clauses: who does what, where and when."""

from dataclasses import dataclass, replace

from transformer.tasks.translation.sample import modifiers, verbs
from transformer.tasks.translation.sample.clauses import Clause
from transformer.tasks.translation.sample.draws import SCENES, Draw, goals, spots
from transformer.tasks.translation.sample.lexicon import MODALS, Phrase, Verb, nouns_with, phrase_table, verb_table
from transformer.tasks.translation.sample.morphology import Case, contract
from transformer.tasks.translation.sample.phrases import Nominal, NounPhrase, Pair

ALONE = {"people": verb_table(verbs.PEOPLE_ALONE), "animal": verb_table(verbs.ANIMAL_ALONE)}
MOVING = {"people": verb_table(verbs.PEOPLE_MOVING), "animal": verb_table(verbs.ANIMAL_MOVING)}
ACTING = {"people": verb_table(verbs.PEOPLE_ACTING), "animal": verb_table(verbs.ANIMAL_ACTING)}
POSTURES = verb_table(verbs.POSTURES)
HELPING = verb_table(verbs.PEOPLE_HELPING)
PREPOSITIONAL = verb_table(verbs.PEOPLE_PREPOSITIONAL)
GIVING = verb_table(verbs.PEOPLE_GIVING)
PLACING = verb_table(verbs.PEOPLE_PLACING)
PACES = phrase_table(modifiers.PACES, " ")
MANNERS = phrase_table(modifiers.MANNERS, " ")
TIMES = phrase_table(modifiers.TIMES)
HABITS = phrase_table(modifiers.HABITS)
FREQUENCIES = phrase_table(modifiers.FREQUENCIES)
PREDICATES = phrase_table(modifiers.PREDICATES, " ")
BE = Verb("sein", "", "ist", "be", "", progressive=False)

_PEOPLE_KINDS = (
    *("acting",) * 9,
    *("placing",) * 4,
    *("moving",) * 3,
    *("posture",) * 3,
    *("alone",) * 2,
    *("helping",) * 2,
    *("giving",) * 3,
    *("prepositional",) * 3,
)
_STANDING = (*SCENES, "waiting", "opening", "plant")
_SITTING = ("seat", "cloth", "climbable", "boat", "top")
_RESTING = ("outside", "cloth", "plant", "bed", "seat", "room")
_ANIMAL_KINDS = ("acting", "acting", "acting", "moving", "moving", "posture", "alone")


def kind_of(subject: Nominal) -> str:
    """`animal` or `people`, which determines what a subject can do."""
    return "animal" if isinstance(subject, NounPhrase) and "animal" in subject.noun.tags else "people"


def _is_place(nominal: Nominal) -> bool:
    """Whether an object is itself the place of the action: nobody tidies up a room on a bridge."""
    return isinstance(nominal, NounPhrase) and not nominal.noun.tags.isdisjoint(("place", "building", "surface"))


def owns(phrase: NounPhrase) -> bool:
    """Whether a possessive may refer to this: people, except where the child would be `it`."""
    return not phrase.noun.tags.isdisjoint(("people", "relative")) and "unnamed" not in phrase.noun.tags


@dataclass(frozen=True)
class Action:
    """Draws the clauses of one sentence."""

    draw: Draw

    def any(self, subject: Nominal, kind: str | None = None) -> Clause:
        """A clause about a subject, without adverbs, with a random frame; kind: `people` or `animal`."""
        being = kind or kind_of(subject)
        frame = self.draw.one(_ANIMAL_KINDS if being == "animal" else _PEOPLE_KINDS)
        if frame in ("helping", "giving", "placing", "prepositional"):
            people = {
                "helping": self._helping,
                "giving": self._giving,
                "placing": self._placing,
                "prepositional": self._prepositional,
            }
            return people[frame](subject)
        if frame == "acting":
            return self.acting(subject, being)
        if frame == "posture":
            return self._posture(subject, being)
        return self._moving(subject, being) if frame == "moving" else self.alone(subject, being)

    def alone(self, subject: Nominal, being: str) -> Clause:
        """A verb without an object."""
        return Clause(subject, self.draw.one(ALONE[being]))

    def acting(self, subject: Nominal, being: str) -> Clause:
        """A verb with an accusative object."""
        verb = self.draw.one(ACTING[being])
        thing, pairs = self._object(verb, subject)
        return Clause(subject, verb, (("acc", thing),), extra_pairs=pairs)

    def _object(self, verb: Verb, subject: Nominal) -> tuple[NounPhrase, tuple[Pair, ...]]:
        noun = self.draw.one(nouns_with(*verb.tags))
        owner = subject.pronoun() if isinstance(subject, NounPhrase) and owns(subject) else None
        if "relative" in noun.tags and owner:
            thing = self.draw.relative(owner)
        else:
            thing = self.draw.object(noun, singular=not verb.plural_objects, owner=owner)
        return thing, ((verb.de, thing.noun.de),)

    def _helping(self, subject: Nominal) -> Clause:
        verb = self.draw.one(HELPING)
        thing, pairs = self._object(verb, subject)
        return Clause(subject, verb, (("dat", thing),), extra_pairs=pairs)

    def _giving(self, subject: Nominal) -> Clause:
        """Dative and accusative: `gibt dem Mädchen einen Apfel`."""
        verb = self.draw.one(GIVING)
        person = self.draw.one(nouns_with("people"))
        receiver = self.draw.described(person, "definite" if self.draw.chance(50) else "indefinite", 30)
        noun = self.draw.one(nouns_with(*verb.tags))
        thing = self.draw.described(noun, "none" if noun.mass else "indefinite")
        pairs = ((verb.de, noun.de),)
        return Clause(subject, verb, (("dat", receiver), ("acc", thing)), extra_pairs=pairs)

    def _placing(self, subject: Nominal) -> Clause:
        """An object and where it is moved to, in the accusative: `legt das Buch auf den Tisch`."""
        verb = self.draw.one(PLACING)
        thing, pairs = self._object(verb, subject)
        goal, goal_pairs = self.draw.at(goals(verb), "acc")
        return Clause(subject, verb, (("acc", thing),), complement=goal, extra_pairs=(*pairs, *goal_pairs))

    def _prepositional(self, subject: Nominal) -> Clause:
        """An object with the preposition that the verb requires: `wartet auf den Bus`."""
        verb = self.draw.one(PREPOSITIONAL)
        thing, pairs = self._object(verb, subject)
        preposition, case_name = verb.preposition.split()
        case: Case = "acc" if case_name == "acc" else "dat"
        complement = Phrase(contract(f"{preposition} {thing.german(case)}"), thing.english(case))
        return Clause(subject, verb, complement=complement, extra_pairs=(*pairs, *thing.pairs()))

    def _posture(self, subject: Nominal, being: str) -> Clause:
        verb = self.draw.one(POSTURES)
        tags = _STANDING if verb.de == "stehen" else _SITTING if being == "people" else _RESTING
        place, pairs = self.draw.at(spots(*tags))
        return Clause(subject, verb, complement=place, extra_pairs=tuple(pairs))

    def _moving(self, subject: Nominal, being: str) -> Clause:
        verb = self.draw.one(MOVING[being])
        goal, pairs = self.draw.at(goals(verb), "acc")
        return Clause(subject, verb, complement=goal, extra_pairs=tuple(pairs))

    def modal(self, clause: Clause) -> Clause:
        """Add `will`, `kann` or another modal verb."""
        return replace(clause, modal=self.draw.one(MODALS))

    def being(self, subject: Nominal) -> Clause:
        """`... müde ist`."""
        return Clause(subject, BE, complement=self.draw.one(PREDICATES))

    def scene(self, clause: Clause) -> Clause:
        """Add a place, if the clause does not have one yet."""
        if clause.complement or any(_is_place(nominal) for _, nominal in clause.objects):
            return clause
        place, pairs = self.draw.at(spots(*SCENES))
        return replace(clause, place=place, extra_pairs=(*clause.extra_pairs, *pairs))

    def _manner(self, clause: Clause) -> Clause:
        if clause.verb.goal_tags:
            return replace(clause, manner=self.draw.one(PACES))
        return replace(clause, manner=self.draw.one(MANNERS)) if clause.objects and clause.verb.progressive else clause

    def when(self, clause: Clause) -> Clause:
        """Add one time or manner, or a habit with the tense that goes with it."""
        choice = self.draw.rng.randrange(100)
        if choice < 40:
            return replace(clause, time=self.draw.one(TIMES))
        if choice < 60:
            return self._manner(clause)
        if choice < 80:
            return replace(clause, time=self.draw.one(HABITS), habit=True)
        return replace(clause, frequency=self.draw.one(FREQUENCIES), habit=True)
