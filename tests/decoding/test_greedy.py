"""Greedy decoding: the cache changes nothing, nor does the batch."""

from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models

from tests.builders import seq2seq
from transformer.decoding.seq2seq.detokenize import detokenize
from transformer.decoding.seq2seq.greedy import greedy_decode
from transformer.nn.seq2seq.interface import Seq2SeqModel
from transformer.nn.seq2seq.model import Seq2SeqTransformer
from transformer.observer import Observer
from transformer.text.batching import Ids, pad
from transformer.text.vocabulary import WORD_SPECIALS, Vocabulary


@pytest.fixture(scope="module")
def target() -> Vocabulary:
    words = {word: index for index, word in enumerate([*WORD_SPECIALS, *(f"w{i}" for i in range(26))])}
    return Vocabulary(Tokenizer(models.WordLevel(words, unk_token="<unk>")))


def sources() -> list[Ids]:
    generator = np.random.default_rng(0)
    return [generator.integers(4, 40, size=length) for length in (3, 9, 1, 5, 31, 9, 2)]


def uncached(model: Seq2SeqModel, source: Ids, target: Vocabulary, steps: int) -> list[int]:
    """The definition: the whole prefix through the decoder again for each token."""
    ids = [target.begin_id]
    for _ in range(steps):
        logits = model.output(model(torch.from_numpy(source)[None], torch.tensor([ids])))[0, -1]
        logits[[target.pad_id, target.begin_id]] = float("-inf")
        ids.append(int(logits.argmax()))
        if ids[-1] == target.end_id:
            break
    return [i for i in ids[1:] if i != target.end_id]


@cache
def trained(norm: str) -> Seq2SeqTransformer:
    """A model that has learned to copy a little, so that its translations differ in tokens and length."""
    model = seq2seq(norm=norm).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    generator = np.random.default_rng(1)
    for _ in range(120):
        copied = [generator.integers(4, 30, size=generator.integers(1, 12)) for _ in range(32)]
        target_ids = pad([np.concatenate(([2], ids, [3])) for ids in copied], 0)
        logits = model.output(model(pad(copied, 0), target_ids[:, :-1]))
        loss = F.cross_entropy(logits.transpose(1, 2), target_ids[:, 1:], ignore_index=0)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_cached_decoding_equals_uncached_for_every_batch_size(norm: str, batch_size: int, target: Vocabulary) -> None:
    model = trained(norm)
    decoded = greedy_decode(model, sources(), target, max_length=20, batch_size=batch_size, observer=Observer())
    assert decoded == [uncached(model, source, target, 20) for source in sources()]
    assert len({len(ids) for ids in decoded}) > 1, "all end together: the test would not see a row that leaves early"


def test_sources_longer_than_the_positions_are_cut(target: Vocabulary) -> None:
    decoded = greedy_decode(
        trained("post"), [np.full(500, 7)], target, max_length=500, batch_size=1, observer=Observer()
    )
    assert len(decoded[0]) <= 31


def test_nothing_to_decode(target: Vocabulary) -> None:
    assert greedy_decode(seq2seq(), [], target, max_length=5, batch_size=4, observer=Observer()) == []


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("a man , who is n't old , sleeps .", "a man, who isn't old, sleeps."),
        ("the girl 's t - shirt ( red )", "the girl's t-shirt (red)"),
        ('he says " hello " !', 'he says "hello"!'),
        ("two \u2581 dogs", "two dogs"),
        ("", ""),
    ],
)
def test_detokenize(tokens: str, text: str) -> None:
    assert detokenize(tokens) == text
