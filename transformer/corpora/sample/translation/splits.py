"""Which combinations belong to which split, and the rows of a split."""

import random
import zlib
from collections.abc import Iterator

from transformer.corpora.sample.translation.phrases import Pair
from transformer.corpora.sample.translation.sentences import Grammar, Sentence

SPLITS = ("train", "validation", "test")
_BUCKETS = 12
_HELD_OUT = {0: "test", 1: "validation"}


def split_of(pair: Pair) -> str:
    """The split that a combination (adjective, noun) or (verb, object) is kept for; most belong to `train`.

    The words are German dictionary forms: `("rot", "Ball")`, `("aufheben", "Ball")`.
    """
    return _HELD_OUT.get(zlib.crc32("|".join(pair).encode()) % _BUCKETS, "train")


def belongs(sentence: Sentence, split: str) -> bool:
    """Whether a sentence may stand in a split.

    `train` has none of the held-out combinations; `validation` and `test` have at least one of their own and none of
    the other's. So no German sentence is in two splits.
    """
    held_out = {split_of(pair) for pair in sentence.pairs} - {"train"}
    return held_out == (set() if split == "train" else {split})


def rows(split: str, count: int, seed: int) -> Iterator[dict[str, str]]:
    """`count` caption pairs `{"de": ..., "en": ...}` of a split, drawn one by one.

    The same split and seed give the same sequence, a smaller count a prefix of it. Raises ValueError for an unknown
    split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    return _rows(split, count, Grammar(random.Random(f"{seed}/{split}")))


def _rows(split: str, count: int, grammar: Grammar) -> Iterator[dict[str, str]]:
    while count > 0:
        sentence = grammar.sentence()
        if belongs(sentence, split):
            count -= 1
            yield {"de": sentence.de, "en": sentence.en}
