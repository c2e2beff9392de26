"""Duplicates, compared with a brute-force search over all pairs."""

import random
from functools import cache

import numpy as np
import pytest

from transformer.data import leakage
from transformer.data.leakage import LeakageCheck, TrigramSets, WordNumbers, find_duplicates, word_count, words
from transformer.data.text import separates_words, written_words


def by_brute_force(text: str, others: list[str]) -> list[float]:
    """The Jaccard similarity between the trigram sets of `text` and of each other text."""

    def trigrams(text: str) -> set[tuple[str, ...]]:
        own = words(text) + [""] * (3 - len(words(text)))
        return {tuple(own[i : i + 3]) for i in range(len(own) - 2)}

    mine = trigrams(text)
    return [len(mine & trigrams(other)) / len(mine | trigrams(other)) for other in others]


@cache
def corpus() -> tuple[list[str], list[str]]:
    """Texts from few words, many of them edited copies of another, so every similarity occurs."""
    draw = random.Random(0)
    others = [" ".join(draw.choices("abcdefgh", k=draw.randrange(0, 30))) for _ in range(300)]
    texts = []
    for other in draw.choices(others, k=200):
        copy = other.split()
        for _ in range(draw.randrange(4)):
            copy.insert(draw.randrange(len(copy) + 1), draw.choice("abcdxy"))
        texts.append(" ".join(copy[draw.randrange(3) :]))
    return texts, others


@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_the_most_similar_text_is_found(threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leakage, "_CHUNK", 64)
    texts, others = corpus()
    expected = [by_brute_force(text, others) for text in texts]
    numbers = WordNumbers()
    found = find_duplicates(TrigramSets.of(texts, numbers), TrigramSets.of(others, numbers), threshold)
    best = np.array([max(row) for row in expected])
    reached = best >= threshold
    assert 10 < reached.sum() < len(texts)
    assert found.similarity == pytest.approx(np.where(reached, best, 0))
    assert found.match.tolist() == [row.index(max(row)) if max(row) >= threshold else -1 for row in expected]


def test_exact_duplicates_have_the_same_words_in_the_same_order() -> None:
    numbers = WordNumbers()
    seen = ["A man sleeps on a bench.", "No", "", "It rains, it rains, it rains, it rains."]
    texts = ["a MAN sleeps - on a bench!", "on a bench a man sleeps", "no!", "y", " ", "It rains, it rains, it rains."]
    found = find_duplicates(TrigramSets.of(texts, numbers), TrigramSets.of(seen, numbers))
    assert found.exact.tolist() == [True, False, True, False, True, False]
    assert found.any.tolist() == [True, False, True, False, True, True]
    assert found.figures() == {"duplicates": 3, "near_duplicates": 1}


def test_emoji_and_punctuation_stand_for_words_where_there_are_none() -> None:
    numbers = WordNumbers()
    seen, others = TrigramSets.of(["😡", ":)"], numbers), TrigramSets.of(["😍", "😡!", ":(", " :) "], numbers)
    assert find_duplicates(others, seen).any.tolist() == [False, True, False, True]


def test_a_split_is_compared_with_training_and_with_what_was_seen_since() -> None:
    check = LeakageCheck(["The sun shines.", "It rains."])
    for split, texts, seen in (
        ("validation", ["It rains!", "It snows."], True),
        ("test", ["It snows!", "It hails."], False),
        ("test_2", ["The sun shines", "It hails."], False),
    ):
        assert check.check(split, texts, seen_from_now_on=seen).exact.tolist() == [True, False]
    assert check.rows == [
        ("validation", 1.0, "It rains!", "train", "It rains."),
        ("test", 1.0, "It snows!", "validation", "It snows."),
        ("test_2", 1.0, "The sun shines", "train", "The sun shines."),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("वह बच्ची सो रही है।", ["वह", "बच्ची", "सो", "रही", "है"]),  # else a boy and a girl who sleep would be the same
        ("X\u030cyz, a\u0301 á!", ["x\u030cyz", "á", "á"]),  # an accent is the same however it is encoded
        ("İstanbul'da", ["i\u0307stanbul", "da"]),
        ("我用 Python 3写代码。", ["我", "用", "python", "3", "写", "代", "码"]),
        ("Straße, l'été, 한 남자가 кот_1", ["straße", "l", "été", "한", "남자가", "кот_1"]),
    ],
)
def test_words_of_several_scripts_are_taken_apart(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "near", "other"),
    [
        ("一个男人睡在公园里的长椅上。", "一个女人睡在公园里的长椅上。", "两只狗在雪地里奔跑。"),
        ("ผู้ชายคนหนึ่งนอนอยู่บนม้านั่งในสวน", "ผู้ชายคนหนึ่งนั่งอยู่บนม้านั่งในสวน", "สุนัขสองตัววิ่งในหิมะ"),
    ],
)
def test_where_words_are_not_separated_characters_stand_for_them(text: str, near: str, other: str) -> None:
    numbers = WordNumbers()
    found = find_duplicates(TrigramSets.of([near, other], numbers), TrigramSets.of([text], numbers))
    assert found.any.tolist() == [True, False]
    assert not separates_words(text) and separates_words("Straße, l'été, 한 남자가 кот_1")


def test_words_are_counted_in_every_script() -> None:
    assert [word_count(text) for text in ("a man , asleep.", "一个男人 Python 3。", "")] == [4, 6, 0]
    assert written_words("两只\n狗")[0] == ["两", "只", " ", "狗"], "one line, whatever the text has"


def test_texts_with_millions_of_words_in_all_stay_different_texts() -> None:
    numbers = WordNumbers()
    first = TrigramSets.of(["order a shipped", "one two three four"], numbers)
    numbers.update((str(number), -1) for number in range(2**21 - len(numbers)))
    other = TrigramSets.of(["order b shipped", "eins zwei drei", "five six seven eight", "one two three four"], numbers)
    assert max(numbers.values()) > 2**21
    found = find_duplicates(other, first)
    assert found.exact.tolist() == [False, False, False, True]
    assert found.match.tolist() == [-1, -1, -1, 1]
