"""Greedy decoding: neither the cache nor the batch changes the result."""

import numpy as np
import pytest

from tests.builders import seq2seq
from tests.decoding import reference
from tests.decoding.models import run, sources, trained, vocabulary
from transformer.generation.detokenize import detokenize


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_cached_decoding_equals_uncached_for_every_batch_size(norm: str, batch_size: int) -> None:
    model = trained(norm)
    decoded = [found[0].ids for found in run(model, sources(), batch_size=batch_size)]
    assert decoded == [reference.greedy(model, source, vocabulary(30), 20) for source in sources()]
    assert len({len(ids) for ids in decoded}) > 1, "all end together: the test would miss rows that leave early"


def test_sources_longer_than_the_positions_are_cut() -> None:
    for method in ("greedy", "beam", "sample"):
        decoded = run(trained("post"), [np.full(500, 7)], method=method, max_length=500)
        assert len(decoded[0][0].ids) <= 31


def test_nothing_to_decode() -> None:
    assert run(seq2seq(), []) == []


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("a man , who is n't old , sleeps .", "a man, who isn't old, sleeps."),
        ("the girl 's t - shirt ( red )", "the girl's t-shirt (red)"),
        ('he says " hello " !', 'he says "hello"!'),
        ("“ Do n’t , ” he said , “ it ’s # 5 . ”", "“Don’t,” he said, “it’s #5.”"),
        ("‘ It ’s the dogs ’ ball and / or mine ’", "‘It’s the dogs’ ball and/or mine’"),
        ("„ Nein “ , sagte er , „ Max heißt ‚ Moritz ‘ . “", "„Nein“, sagte er, „Max heißt ‚Moritz‘.“"),
        ("„ Wie geht ’s , ‚ Max ‘ ? “ , “ so ”", "„Wie geht’s, ‚Max‘?“, “so”"),
        ("the dogs ' ball , ( “ # 5 ” )", "the dogs' ball, (“#5”)"),
        ("two \u2581 dogs", "two dogs"),
        ("", ""),
        ("一 个 男 人 睡 在 公 园 里 。", "一个男人睡在公园里。"),
        ("他 说 ， Paris is nice", "他说， Paris is nice"),
    ],
)
def test_detokenize(tokens: str, text: str) -> None:
    assert detokenize(tokens) == text
