"""A text reads the same however it is written: normal forms, case, characters without a glyph."""

from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from transformer.core.errors import UserError
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.tokenization import PreTokenizer, PreTokenizerParams
from transformer.data.vocabulary import Vocabulary
from transformer.data.vocabulary_training import given_wordpiece, require_joiners, train_wordpiece, word_vocabulary
from transformer.families.seq2seq.scores import text_metrics


def reader(**changes: Any) -> PreTokenizer:
    base: dict[str, Any] = {"kind": "none", "language": None, "lowercase": False, "html_breaks": "keep"}
    return PreTokenizer(PreTokenizerParams(**(base | changes)))


def vocabulary(kind: str, texts: list[str]) -> Vocabulary:
    if kind == "word":
        return word_vocabulary(texts, min_frequency=1, max_size=None)
    if kind == "wordpiece":
        return train_wordpiece(lambda: iter(texts), min_frequency=1, max_size=400, lowercase=False)
    train = {"bpe": train_bpe, "unigram": train_unigram}[kind]
    return train(texts, min_frequency=1, max_size=400, byte_fallback=False)


@pytest.mark.parametrize(("kind", "split"), [("word", "spacy"), ("bpe", "none")])
def test_a_decomposed_text_has_the_ids_of_the_composed_one(kind: str, split: str) -> None:
    read, text = reader(kind=split, language="de"), "schöne Mädchen, Việt Nam"
    composed = read([text])
    found = vocabulary(kind, composed * 5).encode([*composed, *read([normalize("NFD", text)])])
    assert found[0].tolist() == found[1].tolist()


@pytest.mark.parametrize(
    ("language", "text", "lower"),
    [
        ("tr", "IŞIK İSTANBUL", "ışık istanbul"),
        ("az", "DIŞ", "dış"),
        (None, "IGEL", "igel"),
        ("lt", "Ì J\u0301 Į\u0303 I", "i\u0307\u0300 j\u0307\u0301 į\u0307\u0303 i"),
        ("el", "ΟΔΟΣ, ΣΑΣ", "οδος, σας"),
        (None, "J\u030c", "ǰ"),  # no composed capital exists
    ],
)
def test_capitals_give_the_lowercase_word(language: str | None, text: str, lower: str) -> None:
    read = reader(language=language, lowercase=True)
    assert read([text]) == read([lower]) == [lower]


HIDDEN = ["می\u200cخواهم", "ශ්\u200dරී", "a family 👨\u200d👩\u200d👧 here", "so\u00adft ze\u200bro w\u2060j \u200frtl"]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_characters_without_a_glyph_are_kept(kind: str) -> None:
    texts = reader(lowercase=True)(HIDDEN)
    found = vocabulary(kind, texts * 5)
    assert [found.decode(ids.tolist()) for ids in found.encode(texts)] == texts


def test_a_given_vocabulary_that_drops_joiners_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", encoding="utf-8")
    given = given_wordpiece(tmp_path / "vocab.txt", lowercase=False)
    require_joiners(given, ["a", "👨\u200d👩", "Auf\u200clage"] + ["a"] * 98 + HIDDEN[:1])
    with pytest.raises(UserError, match=r"^2 of 4 training texts are spelt with joiners .* vocab\.source to `trained`"):
        require_joiners(given, HIDDEN)
    require_joiners(vocabulary("wordpiece", HIDDEN), HIDDEN)


def test_scores_lowercase_as_the_model_reads_and_compare_characters_not_their_encoding() -> None:
    expected = "IŞIK DIŞARI İSTANBUL ILIK KIŞ"
    answers = reader(language="tr", lowercase=True)([expected])
    lowercased = text_metrics(answers, [expected], cased=False, language="tr")
    composed = text_metrics([expected], [normalize("NFD", expected)], cased=True)
    for found in (lowercased, composed):
        assert [metric.score() for metric in found.values()] == [100, 100]
