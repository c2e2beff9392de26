"""Recurrent models: the batch changes nothing, and every step and parameter takes part."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.builders import recurrent_classifier, recurrent_seq2seq
from tests.nn.test_recurrent import close
from transformer.data import store
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq

SOURCES = [[2, 9, 8, 7, 3], [2, 5, 3], [2, 3], [2, 11, 12, 13, 14, 15, 16, 3], [4]]
TARGET = [2, 4, 6, 11, 5, 9]
VARIANTS = pytest.mark.parametrize(
    "variant",
    [
        {"attention": "none"},
        {"attention": "bahdanau", "cell": "lstm", "encoder_layers": 3, "decoder_layers": 2},
        {"attention": "luong_general", "local_window": 1},
        {"attention": "luong_concat", "local_window": 3, "cell": "lstm", "decoder_layers": 2, "bidirectional": False},
    ],
    ids=lambda variant: "-".join(map(str, variant.values())),
)
POOLINGS = pytest.mark.parametrize("pooling", ["last", "mean", "max"])


def padded(sequences: list[list[int]]) -> Tensor:
    return torch.from_numpy(store.padded([np.array(sequence) for sequence in sequences], 0))


@VARIANTS
def test_padding_order_and_batch_never_change_a_prediction(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant)
    target = torch.tensor([TARGET])
    together = model(padded(SOURCES), target.expand(len(SOURCES), -1))
    turned = model(padded(SOURCES[::-1]), target.expand(len(SOURCES), -1)).flip(0)
    wider = model(F.pad(padded(SOURCES), (0, 4)), target.expand(len(SOURCES), -1))
    for row, sequence in enumerate(SOURCES):
        alone = model(torch.tensor([sequence]), target)[0]
        for batched in (together, turned, wider):
            close(batched[row], alone)


@VARIANTS
def test_what_training_computes_is_the_forward_without_padding(variant: dict[str, Any]) -> None:
    packed, dense = recurrent_seq2seq(**variant), recurrent_seq2seq(**variant)
    sources, targets = padded(SOURCES), padded([[2, 4], [2, 7, 9, 11, 5], [2], [2, 6, 6], [2, 8, 4]])
    states, expected = packed(sources, targets, packed=True), dense(sources, targets)[targets != 0]
    close(states, expected)
    weights = torch.randn(states.shape, dtype=states.dtype)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    for (name, one), other in zip(packed.named_parameters(), dense.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None) == name.startswith("output")
        if one.grad is not None and other.grad is not None:
            assert (one.grad != 0).any()
            close(one.grad, other.grad)


@VARIANTS
def test_rows_of_the_cache_are_chosen_ordered_and_repeated(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant)
    cache = model.start(padded(SOURCES))
    first = torch.tensor([2, 4, 6, 8, 10])
    model.step(first, cache)
    rows, second, third = torch.tensor([3, 0, 3, 1]), torch.tensor([5, 6, 7, 8]), torch.tensor([9, 9, 2, 4])
    cache.select(rows)
    model.step(second, cache)
    logits = model.output(model.step(third, cache))
    for index, row in enumerate(rows.tolist()):
        target = torch.stack((first[row], second[index], third[index]))[None]
        close(logits[index], model.output(model(torch.tensor([SOURCES[row]]), target))[0, -1])


@VARIANTS
def test_rows_without_a_source_are_finite(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant).train()
    states = model(torch.tensor([[0, 0, 0], [2, 9, 3]]), torch.full((2, 1), 2))
    states.square().sum().backward()
    assert torch.isfinite(states).all()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


def own_choices(model: RecurrentSeq2Seq, source: Tensor, first: Tensor, steps: int) -> Tensor:
    """The ids (B, steps) that the model reads when it feeds itself."""
    ids = first[:, None]
    for _ in range(steps - 1):
        ids = torch.cat((ids, model.output(model(source, ids)[:, -1:]).argmax(dim=-1)), dim=1)
    return ids


@VARIANTS
def test_without_teacher_forcing_the_model_reads_its_own_answers(variant: dict[str, Any]) -> None:
    forced, free = recurrent_seq2seq(**variant), recurrent_seq2seq(**variant, teacher_forcing=1e-12)
    source, targets = padded(SOURCES), torch.tensor([TARGET] * len(SOURCES))
    own = own_choices(forced, source, targets[:, 0], targets.shape[1])
    assert not torch.equal(own, targets)
    close(free.train()(source, targets), forced(source, own))
    close(free.train()(source, targets, packed=True), forced(source, own).flatten(0, 1))
    close(free.eval()(source, targets), forced(source, targets))


@POOLINGS
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_order_and_batch_never_change_a_classification(pooling: str, cell: str, bidirectional: bool) -> None:
    model = recurrent_classifier(pooling=pooling, cell=cell, bidirectional=bidirectional, layers=2)
    together, turned = model(padded(SOURCES)), model(padded(SOURCES[::-1])).flip(0)
    for row, sequence in enumerate(SOURCES):
        alone = model(torch.tensor([sequence]))[0]
        close(together[row], alone)
        close(turned[row], alone)
    together.square().sum().backward()
    assert all(each.grad is not None and (each.grad != 0).any() for each in model.parameters())


@POOLINGS
def test_pooling_takes_what_it_says(pooling: str) -> None:
    ids = torch.tensor([[2, 9, 8, 0, 0]])
    model = recurrent_classifier(pooling=pooling)
    states = model.encoder(model.embedding(ids), ids != 0)[0][0, :3]
    expected = {
        "last": torch.cat((states[2, :12], states[0, 12:])),
        "mean": states.mean(dim=0),
        "max": states.amax(dim=0),
    }
    close(model(ids)[0], model.output(expected[pooling]))
