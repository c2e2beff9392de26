"""Assigns combinations to splits, and generates the rows of a split."""

import random
import zlib
from collections.abc import Iterator

from transformer.tasks.sentiment.sample.reviews import Review, Reviewer
from transformer.tasks.sentiment.sample.statements import Pair, Polarity

COLUMNS = ("label", "text")
SPLITS = ("train", "validation", "test", "unsupervised")
_BUCKETS = 20
_HELD_OUT = {0: "test", 1: "validation"}
_SEEN = ("train", "unsupervised")


def split_of(pair: Pair) -> str:
    """The split reserved for a combination (negator, opinion word) or (aspect, opinion word); mostly `train`."""
    return _HELD_OUT.get(zlib.crc32("|".join(pair).encode()) % _BUCKETS, "train")


def belongs(review: Review, split: str) -> bool:
    """Whether a review may be in a split.

    `train` and `unsupervised` have none of the held-out combinations; `validation` and `test` have at least one of
    their own and none of the other's, so no labelled review is in two splits.
    """
    held_out = {split_of(pair) for pair in review.pairs} - {"train"}
    return held_out == (set() if split in _SEEN else {split})


def rows(split: str, count: int, seed: int) -> Iterator[dict[str, int | str]]:
    """Generate `count` reviews `{"label": ..., "text": ...}` of a split; label 1 is positive, 0 negative.

    Each pair of rows has one of each label, in random order; in `unsupervised` all labels are -1. The same split and
    seed give the same sequence; a smaller count gives a prefix of it. Raises ValueError for an unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    return _rows(split, count, random.Random(f"{seed}/{split}"))


def _rows(split: str, count: int, rng: random.Random) -> Iterator[dict[str, int | str]]:
    reviewer = Reviewer(rng)
    label = 0
    for index in range(count):
        label = rng.randrange(2) if index % 2 == 0 else 1 - label
        text = _accepted(reviewer, split, 1 if label else -1).text
        yield {"label": -1 if split == "unsupervised" else label, "text": text}


def _accepted(reviewer: Reviewer, split: str, polarity: Polarity) -> Review:
    while True:
        review = reviewer.review(polarity)
        if belongs(review, split):
            return review
