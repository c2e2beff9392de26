"""Assigns combinations to splits, and generates the rows of a split."""

import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from transformer.tasks.translation.sample.phrases import Pair
from transformer.tasks.translation.sample.sentences import Grammar, Sentence

COLUMNS = ("de", "en")
SPLITS = ("train", "validation", "test")
_BUCKETS = 12
_CANDIDATES = 3
_HELD_OUT = {0: "test", 1: "validation"}


def split_of(pair: Pair) -> str:
    """The split reserved for a combination (adjective, noun) or (verb, object); mostly `train`.

    The words are German dictionary forms: `("rot", "Ball")`, `("aufheben", "Ball")`.
    """
    return _HELD_OUT.get(zlib.crc32("|".join(pair).encode()) % _BUCKETS, "train")


def belongs(sentence: Sentence, split: str) -> bool:
    """Whether a sentence may be in a split.

    `train` has none of the held-out combinations; `validation` and `test` have at least one of their own and none of
    the other's, so no German sentence is in two splits.
    """
    held_out = {split_of(pair) for pair in sentence.pairs} - {"train"}
    return held_out == (set() if split == "train" else {split})


def rows(split: str, count: int, seed: int) -> Iterator[dict[str, str]]:
    """Generate `count` caption pairs `{"de": ..., "en": ...}` of a split.

    Of every three sentences drawn, `train` keeps the one with the rarest word so far. The same split and seed give the
    same sequence; a smaller count gives a prefix of it. Raises ValueError for an unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    sentences = _drawn(split, Grammar(random.Random(f"{seed}/{split}")))
    chosen = _covering(sentences) if split == "train" else sentences
    return ({"de": sentence.de, "en": sentence.en} for sentence in islice(chosen, count))


def _drawn(split: str, grammar: Grammar) -> Iterator[Sentence]:
    """Endlessly many sentences that may be in a split."""
    while True:
        sentence = grammar.sentence()
        if belongs(sentence, split):
            yield sentence


def _covering(sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    """Of every few sentences, keep the one with the rarest word so far, so a small corpus has each word more often."""
    seen = Counter[str]()
    while True:
        candidates = [(_words(sentence), sentence) for sentence in islice(sentences, _CANDIDATES)]
        best, sentence = min(candidates, key=lambda candidate: min(seen[word] for word in candidate[0]))
        seen.update(best)
        yield sentence


def _words(sentence: Sentence) -> list[str]:
    """The words of both languages, case-sensitive: `reifen` (ripe) is not `Reifen` (tire)."""
    return re.findall(r"\w+", f"{sentence.de} {sentence.en}")
