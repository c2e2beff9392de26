"""Properties of every model: padding, order and batch size change nothing, and no position sees the future."""

import math

import pytest
import torch

from tests.builders import classifier, seq2seq
from transformer.data.store import padded
from transformer.nn.layout import Padded
from transformer.nn.positions import sinusoidal_table

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
SEQUENCES = [[2, 9, 8, 7, 3], [2, 5, 3], [2, 3], [2, 11, 12, 13, 14, 15, 16, 3]]


@NORMS
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "none"])
def test_padding_never_changes_a_translation_model(norm: str, positions: str) -> None:
    model = seq2seq(norm=norm, positions=positions)
    target = torch.tensor([[2, 4, 6]])
    together = model(torch.from_numpy(padded([torch.tensor(s).numpy() for s in SEQUENCES], 0)), target.expand(4, -1))
    for row, sequence in enumerate(SEQUENCES):
        alone = model(torch.tensor([sequence]), target)
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-12)


@NORMS
@pytest.mark.parametrize("pooling", ["first", "cls", "mean", "max", "attention"])
def test_padding_never_changes_a_classification(norm: str, pooling: str) -> None:
    model = classifier(norm=norm, pooling=pooling)
    together = model(torch.from_numpy(padded([torch.tensor(s).numpy() for s in SEQUENCES], 0)))
    for row, sequence in enumerate(SEQUENCES):
        torch.testing.assert_close(together[row], model(torch.tensor([sequence]))[0], rtol=0, atol=1e-12)


@NORMS
def test_no_target_position_sees_a_later_one(norm: str) -> None:
    model = seq2seq(norm=norm)
    source, target = Padded(torch.tensor([[2, 9, 3]]), 0), Padded(torch.tensor([[2, 4, 6, 8]]), 0)
    embedded = model.target_embedding(target.token_ids).detach().requires_grad_()
    decoded = model.decoder(embedded, target, model.encode(source), target.mask(source))[0, 1]
    (decoded * torch.arange(16)).sum().backward()  # a plain sum after a normalisation has no gradient
    assert embedded.grad is not None
    assert (embedded.grad[0, 2:] == 0).all()
    assert (embedded.grad[0, :2] != 0).all()


def test_sinusoidal_table_is_the_papers() -> None:
    table = sinusoidal_table(50, 6)
    for position in (0, 1, 49):
        for dimension in range(3):
            angle = position / 10000 ** (2 * dimension / 6)
            assert table[position, 2 * dimension].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * dimension + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_normal_embeddings_have_unit_variance_once_scaled() -> None:
    model = classifier(d_model=64, heads=1, embedding_init="normal")
    assert (model.embedding.tokens.weight * model.embedding.scale).std().item() == pytest.approx(1.0, abs=0.1)


def test_scaled_residuals_differ_in_the_last_matrix_of_each_sublayer() -> None:
    plain, scaled = (dict(seq2seq(residual_init=init).named_parameters()) for init in ("xavier", "scaled"))
    sublayers = {"encoder": 2 * 2, "decoder": 2 * 3}
    smaller = 0
    for name, weight in plain.items():
        stack, factor = name.partition(".")[0], 1.0
        if stack in sublayers and name.endswith(("attention.output.weight", "feed_forward.outer.weight")):
            factor, smaller = sublayers[stack] ** -0.5, smaller + 1
        torch.testing.assert_close(scaled[name], weight * factor, rtol=1e-6, atol=0)
    assert smaller == sum(sublayers.values())
