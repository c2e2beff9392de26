"""A vocabulary's file is entries: its components are this project's own, or it is refused in one line."""

import json
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from transformer.core.errors import UserError
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.vocabulary import WORDPIECE_SPECIALS, Vocabulary
from transformer.data.vocabulary_training import given_wordpiece, train_wordpiece, word_vocabulary

TEXTS = ["Ein Hund läuft \ufdd0 schnell.", "Zwei ▁ Hunde", "çà et là"] * 3


def given(folder: Path) -> Vocabulary:
    path = folder / "vocab.txt"
    path.write_text("\n".join([*WORDPIECE_SPECIALS, "hund", "##e", "zwei"]))
    return given_wordpiece(path, lowercase=True)


KINDS: dict[str, Callable[[Path], Vocabulary]] = {
    "word": lambda _: word_vocabulary(TEXTS, min_frequency=1, max_size=None),
    "wordpiece": lambda _: train_wordpiece(lambda: iter(TEXTS), min_frequency=1, max_size=90, lowercase=True),
    "given": given,
    "unigram": lambda _: train_unigram(TEXTS, min_frequency=1, max_size=60, byte_fallback=False),
    "bpe": lambda _: train_bpe(TEXTS, min_frequency=1, max_size=400, byte_fallback=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_opened_as_it_was_saved(kind: str, tmp_path: Path) -> None:
    vocabulary = KINDS[kind](tmp_path)
    vocabulary.save(tmp_path / "tokenizer.json")
    assert Vocabulary.load(tmp_path / "tokenizer.json").tokenizer.to_str() == vocabulary.tokenizer.to_str()


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "x" * 9}
SHORT = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("word", ["normalizer"], REPLACE),
        ("bpe", ["pre_tokenizer", "pattern"], {"Regex": "(a+)+$"}),
        ("given", ["truncation"], SHORT),
        ("wordpiece", ["decoder", "prefix"], "#"),
        ("word", ["model", "type"], "Other"),
        ("given", ["model", "vocab", "zwei"], 10**6),
    ],
)
def test_other_components_and_entries_are_one_line(kind: str, place: list[str], value: Any, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    KINDS[kind](tmp_path).save(path)
    content = json.loads(path.read_text())
    *outer, last = place
    reduce(getitem, outer, content)[last] = value
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"^{path} is not a valid tokenizer.json: .+$"):
        Vocabulary.load(path)


def test_a_broken_or_missing_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for content in ("{}", "[" * 100_000):
        path.write_text(content)
        with pytest.raises(UserError, match=r"is not a valid tokenizer\.json"):
            Vocabulary.load(path)
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        Vocabulary.load(path)
