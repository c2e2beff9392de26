"""One clause: its parts, and the word order in both languages."""

from dataclasses import dataclass, field
from typing import Literal

from transformer.tasks.translation.sample import morphology
from transformer.tasks.translation.sample.lexicon import Phrase, Verb
from transformer.tasks.translation.sample.morphology import Case
from transformer.tasks.translation.sample.phrases import Nominal, Pair, PronounPhrase

Front = Literal["subject", "time", "place"]


@dataclass(frozen=True)
class Clause:
    """A subject, a verb and its complements.

    objects: dative before accusative, each with its case; complement: what stays at the end of the German middle field
    (a direction, a prepositional object, a predicate); frequency: an adverb that English puts before the verb;
    modal: singular and plural forms in German, then in English; habit: the simple present in English.
    """

    subject: Nominal
    verb: Verb
    objects: tuple[tuple[Case, Nominal], ...] = ()
    complement: Phrase | None = None
    place: Phrase | None = None
    time: Phrase | None = None
    manner: Phrase | None = None
    frequency: Phrase | None = None
    modal: tuple[str, ...] | None = None
    habit: bool = False
    extra_pairs: tuple[Pair, ...] = field(default=())

    def pairs(self) -> list[Pair]:
        """The combinations in this clause that may be held out."""
        found = [*self.subject.pairs(), *self.extra_pairs]
        for _, nominal in self.objects:
            found += nominal.pairs()
        return found

    def main(self, front: Front = "subject") -> str:
        """German main clause: the finite verb comes second, whatever comes first."""
        if front == "time" and self.time:
            return self._second(self.time.de, "time")
        if front == "place" and self.place:
            return self._second(self.place.de, "place")
        return self._second(self.subject.german("nom"), "subject")

    def inverted(self) -> str:
        """German main clause after a fronted subordinate clause: verb, subject, the rest."""
        return self._join(self._finite(), self.subject.german("nom"), self._middle(), self._bracket())

    def continued(self) -> str:
        """German predicate without its subject, after `und`."""
        return self._join(self._finite(), self._middle(), self._bracket())

    def final(self, subject: str | None = None) -> str:
        """German subordinate clause after its conjunction: the finite verb comes last, its particle joined to it.

        subject: a relative pronoun in the subject's place, or the empty string where the subject is already said.
        """
        first = self.subject.german("nom") if subject is None else subject
        if self.modal:
            return self._join(first, self._middle(), self.verb.de, self._finite())
        return self._join(first, self._middle(), self.verb.particle + self._finite())

    def infinitive(self) -> str:
        """German infinitive with `zu`, which stands between particle and verb: `aufzuheben`."""
        joint = self.verb.particle + "zu" if self.verb.particle else "zu "
        return self._join(self._middle(), joint + self.verb.infinitive)

    def _second(self, first: str, front: Front) -> str:
        subject = "" if front == "subject" else self.subject.german("nom")
        return self._join(first, self._finite(), subject, self._middle(front), self._bracket())

    def _finite(self) -> str:
        if self.modal:
            return self.modal[self.subject.plural]
        if self.verb.infinitive == "sein":
            return "sind" if self.subject.plural else "ist"
        return self.verb.infinitive if self.subject.plural else self.verb.third

    def _bracket(self) -> str:
        return self.verb.de if self.modal else self.verb.particle

    def _middle(self, front: Front = "subject") -> str:
        """The middle field: pronouns and definite objects, time, place, manner, indefinite objects, complement."""
        known = [nominal.german(case) for case, nominal in self.objects if nominal.known]
        new = [nominal.german(case) for case, nominal in self.objects if not nominal.known]
        adverbs = [
            self.frequency,
            None if front == "time" else self.time,
            None if front == "place" else self.place,
            self.manner,
        ]
        said = [adverb.de for adverb in adverbs if adverb]
        return self._join(*known, *said, *new, self.complement.de if self.complement else "")

    def english(self, front: Front = "subject", subject: str | None = None) -> str:
        """English clause: subject, verb, objects, complement, manner, place, time; a fronted place stays in front."""
        first = self.subject.english("nom") if subject is None else subject
        tail = [self.complement, self.manner, None if front == "place" else self.place, self.time]
        said = [adverb.en for adverb in tail if adverb]
        ahead = f"{self.place.en}," if front == "place" and self.place else ""
        return self._join(ahead, first, self._english_finite(), self._english_objects(), *said)

    def english_joined(self) -> str:
        """English predicate after `and`: the auxiliary is not repeated."""
        said = self.english(subject="")
        return said.removeprefix("is ").removeprefix("are ")

    def english_bare(self) -> str:
        """English infinitive without `to`, with its objects and adverbs."""
        tail = [self.complement, self.manner, self.place, self.time]
        return self._join(self.verb.en, self._english_objects(), *(adverb.en for adverb in tail if adverb))

    def _english_finite(self) -> str:
        base, *rest = self.verb.en.split(" ")
        often = self.frequency.en if self.frequency else ""
        if self.modal:
            return self._join(self.modal[2 + self.subject.plural], self.verb.en)
        if self.habit or not self.verb.progressive:
            return self._join(often, morphology.english_present(base, plural=self.subject.plural), *rest)
        auxiliary = morphology.english_present("be", plural=self.subject.plural)
        return self._join(auxiliary, morphology.english_ing(base), *rest)

    def _english_objects(self) -> str:
        said = [nominal.english(case) for case, nominal in self.objects]
        only_pronoun = len(self.objects) == 1 and isinstance(self.objects[0][1], PronounPhrase)
        particle = self.verb.en_particle
        return self._join(*said, particle) if only_pronoun else self._join(particle, *said)

    @staticmethod
    def _join(*words: str) -> str:
        return " ".join(word for word in words if word)
