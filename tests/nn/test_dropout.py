"""Dropout: the share it drops, the mean it keeps, and what it leaves alone."""

import pytest
import torch

from transformer.nn.dropout import Dropout, drop_tokens, dropout

PAD = 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_drops_its_share_and_keeps_the_mean(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    size = 1_000_003  # no multiple of the lanes of a draw
    dropped = dropout(torch.ones(size, dtype=dtype), probability)
    five_sigma = 5 * (probability * (1 - probability) / size) ** 0.5
    assert dropped.eq(0).double().mean().item() == pytest.approx(probability, abs=five_sigma + 1e-5)
    assert dropped.dtype == dtype
    kept = dropped[dropped != 0]
    assert kept.min().item() == kept.max().item() == pytest.approx(1 / (1 - probability), rel=5e-3)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(4)
    gone = dropout(torch.ones(4_000_000), 0.5).eq(0).double()
    for distance in (1, 2, 3, 4, 8):
        both = (gone[:-distance] * gone[distance:]).mean().item()
        assert both == pytest.approx(0.25, abs=0.002)


def test_gradients_pass_where_values_pass() -> None:
    states = torch.ones(1000, requires_grad=True)
    dropped = dropout(states, 0.3)
    dropped.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert torch.equal(states.grad, dropped)


def test_repeats_with_the_seed() -> None:
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        results.append(dropout(torch.ones(77), 0.4))
    assert torch.equal(*results)


@pytest.mark.parametrize("probability", [1e-9, 0.9999999])
def test_extreme_probabilities_stay_finite(probability: float) -> None:
    assert dropout(torch.ones(64), probability).isfinite().all()


def test_evaluation_drops_nothing() -> None:
    module = Dropout(0.5).eval()
    states = torch.randn(8)
    assert torch.equal(module(states), states)
    assert not torch.equal(module.train()(states), states)


def test_word_dropout_leaves_out_its_share_and_keeps_the_order() -> None:
    torch.manual_seed(6)
    width, rows, probability = 2001, 50, 0.3
    ids = torch.arange(10, 10 + width).repeat(rows, 1)
    ids[1, 5:] = PAD
    thinned = drop_tokens(ids, PAD, probability)
    assert thinned.shape == ids.shape
    left = [row[row != PAD] for row in thinned]
    assert all(bool((row.diff() > 0).all()) for row in left)  # in their order, none twice
    assert all(bool((row[: len(kept)] == kept).all()) for row, kept in zip(thinned, left, strict=True))  # padded behind
    assert set(left[1].tolist()) <= set(range(10, 15))
    share = 1 - sum(len(row) - 1 for number, row in enumerate(left) if number != 1) / ((rows - 1) * (width - 1))
    assert share == pytest.approx(probability, abs=5 * (probability * (1 - probability) / (rows * width)) ** 0.5)


def test_word_dropout_keeps_the_first_token_and_empty_rows() -> None:
    ids = torch.tensor([[1, 2, 3], [4, PAD, PAD], [PAD, PAD, PAD]])
    assert drop_tokens(ids, PAD, 0.999999).tolist() == [[1, PAD, PAD], [4, PAD, PAD], [PAD] * 3]
    assert drop_tokens(ids, PAD, 0.0) is ids
