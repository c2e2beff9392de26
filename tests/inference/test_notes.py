"""What answers say about themselves: what was not read of the text, and where they stop short."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer.cli import main
from transformer.core.files import read_json
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.vocabulary import Vocabulary, clip
from transformer.data.vocabulary_training import train_wordpiece, word_vocabulary
from transformer.inference.bundle import open_bundle
from transformer.inference.notes import Tally

TEXT = "the old dog sees the bridge ."
VOCABULARIES: dict[str, Callable[[], Vocabulary]] = {
    "word": lambda: word_vocabulary([TEXT], min_frequency=1, max_size=None),
    "wordpiece": lambda: train_wordpiece(lambda: iter([TEXT]), min_frequency=1, max_size=70, lowercase=True),
    "bpe": lambda: train_bpe([TEXT] * 2, min_frequency=1, max_size=70, byte_fallback=False),
    "unigram": lambda: train_unigram([TEXT] * 2, min_frequency=1, max_size=70, byte_fallback=False),
}


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_what_a_vocabulary_does_not_know_is_named(kind: str) -> None:
    vocabulary = VOCABULARIES[kind]()
    text = "the 犬 sees the old 犬 , the 猫 ."
    (ids,) = vocabulary.encode([text])
    assert [*vocabulary.unknown_words(text, ids)] == ["犬", ",", "猫"]
    assert [*vocabulary.unknown_words(text, clip(ids, 6))] == ["犬"], "the rest was not read"
    assert vocabulary.unknown_words(TEXT, vocabulary.encode([TEXT])[0]) == {}


def test_notes_of_a_kind_are_one_line() -> None:
    tally = Tally()
    for notes in [("lacks: a, b",), (), ("lacks: b, c", "cut"), ("cut",)]:
        tally.add(notes)
    assert [*tally.lines()] == ["lacks: a, b, c (2 of 4 texts)", "cut (2 of 4 texts)"]


@pytest.fixture(scope="module")
def models(bundles: dict[str, Path]) -> dict[str, Any]:
    return {task: open_bundle(bundle, "cpu") for task, bundle in bundles.items()}


LONG = ". " * 400
UNREAD = f"{LONG} 犬"


def test_a_translation_has_notes(models: dict[str, Any]) -> None:
    model = models["translation"]
    model.decoding = model.decoding.model_copy(update={"long_sources": "cut", "method": "greedy", "n_best": 1})
    size = model.decoder.positions - 2

    def notes(text: str, **changes: Any) -> tuple[str, ...]:
        decoding = model.decoding.model_copy(update=changes)
        ((translation,),) = model.translate_n_best([text], decoding=decoding)
        assert translation == (translation.text, translation.score), "notes are no part of the tuple"
        found: tuple[str, ...] = translation.notes
        assert model.table([text], decoding)["notes"] == ["; ".join(found)]
        return tuple(each for each in found if "maximum length" not in each)

    assert notes(". .") == notes("") == ()
    assert notes(". 犬 .") == ("words that the vocabulary lacks: 犬",)
    assert notes(UNREAD) == (f"only the first {size} tokens of the text were read",)
    assert notes(UNREAD, long_sources="split") == (
        f"the text was translated in parts of at most {size} tokens",
        "words that the vocabulary lacks: 犬",
    )


def test_a_prediction_has_notes(models: dict[str, Any]) -> None:
    model = models["sentiment"]
    texts = ["a fine film", "", "犬 犬", UNREAD]
    answers = model.classify(texts)
    assert [len(answer) for answer in answers] == [2] * 4, "notes are no part of the tuple"
    assert [answer.notes for answer in answers] == [
        (),
        ("an empty text gives no evidence: its label is what the model answers without any word",),
        ("words that the vocabulary lacks: 犬",),
        (f"only the first {model.scorer.positions - 2} tokens of the text were read",),
    ]
    assert model.table(texts)["notes"] == ["; ".join(answer.notes) for answer in answers]


def test_a_filling_has_notes(models: dict[str, Any]) -> None:
    model = models["language"]
    size = model.engine.positions - 2
    assert {each.notes for each in model.fill("the [MASK] is", 3)} == {()}
    assert model.fill("no gap")[0].notes == ("a text without [MASK] has no gap: it stays as it is",)
    assert model.fill(f"犬 {LONG}[MASK]", 1)[0].notes == (
        f"only {size} tokens around the gaps were read",
        "words that the vocabulary lacks: 犬",
    )
    assert model.table(["no gap"])["notes"] == ["a text without [MASK] has no gap: it stays as it is"]


def test_the_command_notes_each_kind_once_on_stderr(
    bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", str(bundles["sentiment"]), "a fine film", "犬", "a 猫 犬", UNREAD]
    monkeypatch.setattr(sys, "argv", ["transformer", "classify", *given])
    main()
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 4
    positions = read_json(bundles["sentiment"] / "model" / "config.json")["model"]["max_length"]
    assert printed.err.splitlines() == [
        "note: words that the vocabulary lacks: 犬, 猫 (2 of 4 texts)",
        f"note: only the first {positions - 2} tokens of the text were read (1 of 4 texts)",
    ]
