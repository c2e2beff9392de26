"""The embedded sample corpora: German grammar, held-out combinations, and what a bag of words can learn."""

import random
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from transformer.tasks.sentiment.sample import splits as sentiment
from transformer.tasks.sentiment.sample import splits as sentiment_splits
from transformer.tasks.sentiment.sample.reviews import Reviewer
from transformer.tasks.translation.sample import splits as translation
from transformer.tasks.translation.sample import splits as translation_splits
from transformer.tasks.translation.sample import verbs
from transformer.tasks.translation.sample.actions import BE
from transformer.tasks.translation.sample.clauses import Clause
from transformer.tasks.translation.sample.lexicon import ADJECTIVES, MODALS, NOUNS, Noun, Phrase, Verb, verb_table
from transformer.tasks.translation.sample.morphology import (
    Case,
    contract,
    english_indefinite,
    english_ing,
    english_plural,
    english_present,
)
from transformer.tasks.translation.sample.phrases import Article, NounPhrase, PronounPhrase
from transformer.tasks.translation.sample.sentences import Grammar

Rows = Callable[[str, int, int], Iterator[dict[str, Any]]]
CORPORA: list[tuple[Rows, str]] = [(translation.rows, "de"), (sentiment.rows, "text")]


def noun(de: str, tag: str = "") -> Noun:
    return next(entry for entry in NOUNS if entry.de == de and (not tag or tag in entry.tags))


def phrase(
    article: Article, adjective: str, de: str, *, plural: bool = False, quantity: str = "", tag: str = ""
) -> NounPhrase:
    entry = next((entry for entry in ADJECTIVES if entry.de == adjective), None)
    counted = Phrase(quantity, "") if quantity else None
    return NounPhrase(noun(de, tag), article, entry, plural, counted)


def verb(de: str, table: str = verbs.PEOPLE_ACTING) -> Verb:
    return next(entry for entry in verb_table(table) if entry.de == de)


@pytest.mark.parametrize(
    ("given", "case", "expected"),
    [
        (phrase("definite", "rot", "Hut"), "nom", "der rote Hut"),
        (phrase("definite", "rot", "Hut"), "acc", "den roten Hut"),
        (phrase("definite", "rot", "Hut"), "dat", "dem roten Hut"),
        (phrase("definite", "jung", "Frau"), "acc", "die junge Frau"),
        (phrase("definite", "jung", "Frau"), "dat", "der jungen Frau"),
        (phrase("definite", "klein", "Kind"), "acc", "das kleine Kind"),
        (phrase("definite", "klein", "Kind"), "dat", "dem kleinen Kind"),
        (phrase("definite", "klein", "Kind", plural=True), "nom", "die kleinen Kinder"),
        (phrase("definite", "klein", "Kind", plural=True), "dat", "den kleinen Kindern"),
        (phrase("indefinite", "rot", "Hut"), "nom", "ein roter Hut"),
        (phrase("indefinite", "rot", "Hut"), "acc", "einen roten Hut"),
        (phrase("indefinite", "rot", "Hut"), "dat", "einem roten Hut"),
        (phrase("indefinite", "müde", "Katze"), "nom", "eine müde Katze"),
        (phrase("indefinite", "müde", "Katze"), "dat", "einer müden Katze"),
        (phrase("indefinite", "dunkel", "Hemd"), "acc", "ein dunkles Hemd"),
        (phrase("indefinite", "teuer", "Auto"), "dat", "einem teuren Auto"),
        (phrase("indefinite", "hoch", "Turm"), "acc", "einen hohen Turm"),
        (phrase("definite", "", "Junge"), "acc", "den Jungen"),
        (phrase("indefinite", "mutig", "Student"), "dat", "einem mutigen Studenten"),
        (phrase("definite", "", "Löwe"), "nom", "der Löwe"),
        (phrase("none", "heiß", "Tee"), "nom", "heißer Tee"),
        (phrase("none", "heiß", "Tee"), "acc", "heißen Tee"),
        (phrase("none", "frisch", "Brot"), "dat", "frischem Brot"),
        (phrase("none", "kalt", "Milch"), "dat", "kalter Milch"),
        (phrase("none", "klein", "Hund", plural=True, quantity="zwei"), "acc", "zwei kleine Hunde"),
        (phrase("none", "klein", "Hund", plural=True, quantity="zwei"), "dat", "zwei kleinen Hunden"),
        (phrase("none", "alt", "Mann", plural=True, quantity="viele"), "dat", "vielen alten Männern"),
        (phrase("none", "neu", "Auto", plural=True), "dat", "neuen Autos"),
        (phrase("none", "", "Bank", plural=True, tag="furniture"), "nom", "Bänke"),
        (phrase("none", "", "Bank", plural=True, tag="building"), "nom", "Banken"),
        (phrase("indefinite", "nass", "Holzbank"), "dat", "einer nassen Holzbank"),
        (phrase("definite", "", "Apfelbaum", plural=True), "dat", "den Apfelbäumen"),
    ],
)
def test_noun_phrases_are_declined(given: NounPhrase, case: Case, expected: str) -> None:
    assert given.german(case) == expected


def test_possessives_follow_the_owner_in_both_languages() -> None:
    girl, sister = phrase("definite", "", "Mädchen"), noun("Schwester")
    assert NounPhrase(sister, owner=girl.pronoun()).german("dat") == "seiner Schwester"
    assert NounPhrase(sister, owner=girl.pronoun()).english("dat") == "her sister"
    women = phrase("definite", "", "Frau", plural=True)
    assert NounPhrase(noun("Hund"), owner=women.pronoun()).german("acc") == "ihren Hund"
    assert NounPhrase(noun("Hund"), owner=women.pronoun()).english("acc") == "their dog"


def test_the_same_german_word_has_two_translations() -> None:
    assert phrase("indefinite", "", "Bank", tag="furniture").english("nom") == "a bench"
    assert phrase("indefinite", "", "Bank", tag="building").english("nom") == "a bank"
    assert {entry.en for entry in NOUNS if entry.de == "Schloss"} == {"lock", "castle"}


def _picking_up() -> Clause:
    boy, ball = phrase("indefinite", "klein", "Junge"), phrase("indefinite", "rot", "Ball")
    return Clause(boy, verb("aufheben"), (("acc", ball),), place=Phrase("im Park", "in the park"))


def test_separable_verbs_in_every_order() -> None:
    clause = _picking_up()
    assert clause.main() == "ein kleiner Junge hebt im Park einen roten Ball auf"
    assert clause.main("place") == "im Park hebt ein kleiner Junge einen roten Ball auf"
    assert clause.inverted() == "hebt ein kleiner Junge im Park einen roten Ball auf"
    assert clause.final() == "ein kleiner Junge im Park einen roten Ball aufhebt"
    assert clause.infinitive() == "im Park einen roten Ball aufzuheben"
    assert clause.english() == "a small boy is picking up a red ball in the park"
    assert clause.english("place") == "in the park, a small boy is picking up a red ball"


def test_definite_objects_and_pronouns_come_before_the_adverbs() -> None:
    boy, ball = phrase("definite", "", "Junge"), phrase("definite", "", "Ball")
    park = Phrase("im Park", "in the park")
    known = Clause(boy, verb("aufheben"), (("acc", ball),), place=park)
    assert known.main() == "der Junge hebt den Ball im Park auf"
    pronoun = Clause(boy, verb("aufheben"), (("acc", PronounPhrase(ball.pronoun())),), place=park)
    assert pronoun.main() == "der Junge hebt ihn im Park auf"
    assert pronoun.english() == "the boy is picking it up in the park"


def test_modal_verbs_send_the_infinitive_to_the_end() -> None:
    women = phrase("none", "", "Frau", plural=True)
    must = next(modal for modal in MODALS if modal[0] == "muss")
    clause = Clause(women, verb("auspacken"), (("acc", phrase("definite", "", "Koffer")),), modal=must)
    assert clause.main() == "Frauen müssen den Koffer auspacken"
    assert clause.final() == "Frauen den Koffer auspacken müssen"
    assert clause.english() == "women have to unpack the suitcase"


def test_tense_and_agreement() -> None:
    man = phrase("definite", "", "Mann")
    reading = Clause(man, verb("lesen"), (("acc", phrase("indefinite", "", "Buch")),))
    assert reading.english() == "the man is reading a book"
    often = Clause(man, reading.verb, reading.objects, frequency=Phrase("oft", "often"), habit=True)
    assert (often.main(), often.english()) == ("der Mann liest oft ein Buch", "the man often reads a book")
    tired = Clause(phrase("definite", "", "Mann", plural=True), BE, complement=Phrase("müde", "tired"))
    assert (tired.final(), tired.english()) == ("die Männer müde sind", "the men are tired")


def test_contractions_and_english_forms() -> None:
    assert [contract(text) for text in ("in dem Park", "an das Fenster", "auf dem Tisch")] == [
        "im Park",
        "ans Fenster",
        "auf dem Tisch",
    ]
    assert [english_ing(word) for word in ("sit", "ride", "lie", "see", "open", "carry", "draw")] == [
        "sitting",
        "riding",
        "lying",
        "seeing",
        "opening",
        "carrying",
        "drawing",
    ]
    assert [english_present(word, plural=False) for word in ("carry", "play", "watch", "be")] == [
        "carries",
        "plays",
        "watches",
        "is",
    ]
    assert [english_plural(word) for word in ("box", "puppy", "monkey")] == ["boxes", "puppies", "monkeys"]
    assert english_indefinite("old man") == "an old man"


def test_every_pattern_starts_with_a_capital_and_ends_with_a_full_stop() -> None:
    for row in translation.rows("train", 2_000, 7):
        for text in row.values():
            assert text[0].isupper() and text.endswith(".") and text.count(".") == 1
            assert not re.search(r"  | ,|,,|,\.", text)
        for joined in re.findall(r" and \w+ing (?:it|him|her) ", row["en"]):
            assert re.search(r"\b(is|are)\b", row["en"].split(joined)[0])


@pytest.mark.parametrize(("rows", "key"), CORPORA)
def test_the_same_seed_gives_the_same_rows_and_a_smaller_count_a_prefix(rows: Rows, key: str) -> None:
    first = list(rows("train", 200, 3))
    assert first == list(rows("train", 200, 3))
    assert first[:77] == list(rows("train", 77, 3))
    assert first != list(rows("train", 200, 4))
    assert len({row[key] for row in first}) > 190


@pytest.mark.stress
@pytest.mark.parametrize(("rows", "key"), CORPORA)
def test_rows_take_constant_memory(rows: Rows, key: str) -> None:
    list(rows("train", 500, 1))
    tracemalloc.start()
    total = sum(len(row[key]) for row in rows("train", 4_000, 1))  # a full list would take more than 2 MB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 4_000
    assert peak < 1_000_000


@pytest.mark.parametrize(("rows", "key"), CORPORA)
def test_an_unknown_split_is_refused_at_once(rows: Rows, key: str) -> None:
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        rows("dev", 1, 1)


def _drawn(module: Any, source: Iterator[Any], split: str) -> list[Any]:
    return list(islice((item for item in source if module.belongs(item, split)), 200))


def _sources() -> list[tuple[Any, Callable[[], Iterator[Any]]]]:
    def captions() -> Iterator[Any]:
        grammar = Grammar(random.Random("1"))
        while True:
            yield grammar.sentence()

    def reviews() -> Iterator[Any]:
        reviewer = Reviewer(random.Random("1"))
        while True:
            yield reviewer.review(1)

    return [(translation_splits, captions), (sentiment_splits, reviews)]


@pytest.mark.parametrize(("module", "source"), _sources())
def test_held_out_combinations_are_in_their_split_alone(module: Any, source: Callable[[], Iterator[Any]]) -> None:
    for split in ("train", "validation", "test"):
        for item in _drawn(module, source(), split):
            kept_for = {module.split_of(pair) for pair in item.pairs}
            assert kept_for <= {"train", split}
            assert split == "train" or split in kept_for


def test_the_held_out_combinations_do_not_move() -> None:
    pairs = [(adjective.de, entry.de) for entry in NOUNS for adjective in ADJECTIVES]
    share = Counter(translation_splits.split_of(pair) for pair in pairs)
    assert 0.07 < share["test"] / len(pairs) < 0.10
    held_out = {pair for pair in pairs if translation_splits.split_of(pair) != "train"}
    for adjective, entry in sorted(held_out)[:300]:
        stems = {item.stem for item in ADJECTIVES if item.de == adjective}
        pattern = re.compile(rf"\b({'|'.join(stems)})e?[mnrs]? {entry}\b")
        assert not any(pattern.search(row["de"]) for row in _TRAIN)


_TRAIN = list(translation.rows("train", 500, 11))


def test_vocabularies_have_several_hundred_words() -> None:
    words = {key: Counter[str]() for key in ("de", "en", "text")}
    for row in translation.rows("train", 5_000, 1):
        words["de"].update(re.findall(r"\w+", row["de"].lower()))
        words["en"].update(re.findall(r"\w+", row["en"].lower()))
    for review in sentiment.rows("train", 2_000, 1):
        words["text"].update(re.findall(r"\w+", str(review["text"]).lower()))
    assert len(words["de"]) > 1_000
    assert len(words["en"]) > 700
    assert len(words["text"]) > 400


def test_labels_are_balanced_and_unsupervised_has_none() -> None:
    for split in ("train", "validation", "test"):
        assert sum(int(row["label"]) for row in sentiment.rows(split, 400, 5)) == 200
    assert {row["label"] for row in sentiment.rows("unsupervised", 50, 5)} == {-1}


def test_reviews_have_two_to_eight_sentences() -> None:
    counts = Counter(str(row["text"]).count(".") for row in sentiment.rows("train", 1_000, 1))
    assert min(counts) >= 2
    assert max(counts) <= 8


def _accuracy(longest: int) -> float:
    train, test = list(sentiment.rows("train", 3_000, 1)), list(sentiment.rows("test", 800, 1))
    counter = CountVectorizer(ngram_range=(1, longest))
    model = LogisticRegression(C=0.3, max_iter=100)
    model.fit(counter.fit_transform([row["text"] for row in train]), [row["label"] for row in train])
    score = model.score(counter.transform([row["text"] for row in test]), [row["label"] for row in test])
    return float(score)


def test_a_bag_of_words_knows_something_and_word_order_knows_more() -> None:
    single, triple = _accuracy(1), _accuracy(3)
    assert 0.55 < single < 0.75
    assert triple > single + 0.04
