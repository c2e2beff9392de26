"""Recurrent models: properties of every model, and that one learns."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.builders import recurrent_classifier, recurrent_seq2seq
from tests.nn.test_recurrent import close
from transformer.data import store
from transformer.families.classifier.network import build_model as build_classifier
from transformer.families.seq2seq.network import build_model
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq
from transformer.nn.recurrent import Cell, Layer

SOURCES = [[2, 9, 8, 7, 3], [2, 5, 3], [2, 3], [2, 11, 12, 13, 14, 15, 16, 3], [4]]
TARGET = [2, 4, 6, 11, 5, 9]
ATTENTIONS: list[dict[str, Any]] = [
    {"attention": "none"},
    {"attention": "bahdanau", "cell": "lstm", "encoder_layers": 3, "decoder_layers": 2},
    {"attention": "luong_general", "local_window": 1},
    {"attention": "luong_concat", "local_window": 3, "cell": "lstm", "decoder_layers": 2, "bidirectional": False},
]
"""Each path through the code; other variants differ only in the score, which test_recurrent_decoders.py tests."""
MORE: list[dict[str, Any]] = [
    {"attention": "bahdanau"},
    {"attention": "luong_dot"},
    {"attention": "luong_general"},
    {"attention": "luong_concat"},
    {"attention": "luong_scaled_general"},
    {"attention": "luong_dot", "local_window": 2},
    {"attention": "none", "cell": "lstm", "encoder_layers": 2, "decoder_layers": 3},
]
VARIANTS = pytest.mark.parametrize(
    "variant",
    [*ATTENTIONS, *(pytest.param(variant, marks=pytest.mark.stress) for variant in MORE)],
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
    for one, other in zip(packed.parameters(), dense.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None and other.grad is not None:
            close(one.grad, other.grad)


@VARIANTS
def test_steps_equal_the_whole_forward(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant)
    targets = torch.tensor([TARGET, TARGET[::-1], [7] * 6, [2, 3, 4, 5, 0, 0], [2] * 6])
    together = model.output(model(padded(SOURCES), targets))
    cache = model.start(padded(SOURCES))
    for position in range(targets.shape[1]):
        close(model.output(model.step(targets[:, position], cache)), together[:, position])


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
def test_no_target_position_sees_a_later_one(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant)
    embedded = model.target_embedding(torch.tensor([2, 4, 6, 8])).detach().requires_grad_()
    states = model.decoder(embedded, [1] * 4, model.start(torch.tensor([[2, 9, 3]])))
    states[1].sum().backward()
    assert embedded.grad is not None
    assert (embedded.grad[2:] == 0).all()
    assert (embedded.grad[:2] != 0).any(dim=1).all()


@VARIANTS
def test_the_gradient_reaches_every_parameter(variant: dict[str, Any]) -> None:
    model = recurrent_seq2seq(**variant).train()
    logits = model.output(model(padded(SOURCES), torch.tensor([TARGET] * len(SOURCES))))
    F.cross_entropy(logits.flatten(0, 1), torch.tensor(TARGET * len(SOURCES))).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


@VARIANTS
@pytest.mark.parametrize("source", [[[4]], [[2, 3]], [[0, 0, 0], [2, 9, 3]]])
def test_shortest_sequences_and_empty_rows_are_finite(variant: dict[str, Any], source: list[list[int]]) -> None:
    model = recurrent_seq2seq(**variant).train()
    logits = model.output(model(torch.tensor(source), torch.full((len(source), 1), 2)))
    assert logits.shape == (len(source), 1, 30)
    logits.square().sum().backward()
    assert torch.isfinite(logits).all()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_context_matters_without_attention() -> None:
    """Cho's fixed vector goes into every step: with the same first state, another source gives other outputs."""
    model = recurrent_seq2seq(attention="none")
    one, other = model.start(torch.tensor([[2, 9, 8, 3]])), model.start(torch.tensor([[2, 5, 3]]))
    other.layers = one.layers
    ids = torch.tensor([2])
    assert not torch.allclose(model.step(ids, one), model.step(ids, other))


def test_input_feeding_reaches_the_next_step() -> None:
    model = recurrent_seq2seq(attention="luong_general")
    one, other = model.start(torch.tensor([[2, 9, 8, 3]])), model.start(torch.tensor([[2, 9, 8, 3]]))
    assert (one.fed == 0).all()
    model.step(torch.tensor([2]), one)
    model.step(torch.tensor([2]), other)
    other.fed = torch.zeros_like(other.fed)
    assert not torch.allclose(model.step(torch.tensor([4]), one), model.step(torch.tensor([4]), other))


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
    close(free.eval()(source, targets), forced(source, targets))


def test_teacher_forcing_draws_its_share_from_torchs_generator() -> None:
    model = recurrent_seq2seq(attention="none", teacher_forcing=0.25).train()
    read: list[Tensor] = []
    model.target_embedding.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    source, targets = padded([[2, 9, 3]] * 200), torch.full((200, 11), 29)
    torch.manual_seed(1)
    model(source, targets)
    forced = torch.cat(read[1:]).eq(29).double().mean().item()
    assert forced == pytest.approx(0.25, abs=0.04), "2,000 draws: four standard deviations"
    first, second = read.copy(), []
    read.clear()
    torch.manual_seed(1)
    model(source, targets)
    second = read.copy()
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))


def test_dropout_is_at_work_in_training_only() -> None:
    model = recurrent_seq2seq(dropout=0.5)
    source, target = padded(SOURCES), torch.tensor([TARGET] * len(SOURCES))
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))


@pytest.mark.parametrize(
    "attention",
    ["bahdanau", *(pytest.param(f"luong_{name}", marks=pytest.mark.stress) for name in ("general", "dot", "concat"))],
)
def test_attention_learns_to_copy(attention: str) -> None:
    """A uniform guess among ten symbols costs ln 10 = 2.3 nats per token."""
    model = recurrent_seq2seq(attention=attention, hidden=32, embedding=16).float().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(250):
        ids = torch.randint(4, 14, (32, 6), generator=generator)
        target = F.pad(F.pad(ids, (1, 0), value=2), (0, 1), value=3)
        logits = model.output(model(ids, target[:, :-1]))
        loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] > 2.3
    assert sum(losses[-10:]) / 10 < 0.3


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


@POOLINGS
def test_the_gradient_reaches_every_parameter_of_a_classifier(pooling: str) -> None:
    model = recurrent_classifier(pooling=pooling, layers=2).train()
    F.cross_entropy(model(padded(SOURCES)), torch.tensor([0, 1, 1, 0, 1])).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


def test_pooling_takes_what_it_says() -> None:
    ids = torch.tensor([[2, 9, 8, 0, 0]])
    for pooling in ("last", "mean", "max"):
        model = recurrent_classifier(pooling=pooling)
        states = model.encoder(model.embedding(ids), ids != 0).states[0, :3]
        expected = {
            "last": torch.cat((states[2, :12], states[0, 12:])),
            "mean": states.mean(dim=0),
            "max": states.amax(dim=0),
        }[pooling]
        close(model(ids)[0], model.output(expected))


def test_a_classifier_learns_what_only_the_order_tells() -> None:
    """Whether 5 comes before 6, which a bag of words cannot tell."""
    model = recurrent_classifier(hidden=16).float().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    for _ in range(120):
        ids = torch.randint(7, 20, (32, 10), generator=generator)
        labels = torch.randint(0, 2, (32,), generator=generator)
        ids[:, 3], ids[:, 7] = 5 + labels, 6 - labels
        loss = F.cross_entropy(model(ids), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 0.1, "a guess costs ln 2 = 0.69"


def test_the_factories_build_what_the_configuration_says() -> None:
    seq2seq, classifier = recurrent_seq2seq(), recurrent_classifier()
    assert type(build_model(seq2seq.config)) is type(seq2seq)
    assert type(build_classifier(classifier.config)) is type(classifier)
    again = type(seq2seq.config).model_validate(seq2seq.config.model_dump())
    assert again == seq2seq.config


def test_both_directions_have_cells_of_their_own() -> None:
    layers = recurrent_classifier(layers=2).encoder.layers
    for layer in layers:
        assert isinstance(layer, Layer) and isinstance(layer.backwards, Cell)
        assert layer.backwards is not layer.forwards
