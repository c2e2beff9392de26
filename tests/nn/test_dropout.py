"""Dropout does not affect evaluation; word dropout and cutoff drop their share of the tokens."""

import pytest
import torch
from torch import nn

from tests.builders import LAYERS
from transformer.nn.config import TransformerParams
from transformer.nn.dropout import Dropout, drop_tokens, token_cutoff
from transformer.nn.positions import TokenEmbedding, embedding_positions

PAD = 7


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
    assert all(bool((row.diff() > 0).all()) for row in left)  # in order, none twice
    assert all(bool((row[: len(kept)] == kept).all()) for row, kept in zip(thinned, left, strict=True))  # then padding
    assert set(left[1].tolist()) <= set(range(10, 15))
    share = 1 - sum(len(row) - 1 for number, row in enumerate(left) if number != 1) / ((rows - 1) * (width - 1))
    assert share == pytest.approx(probability, abs=5 * (probability * (1 - probability) / (rows * width)) ** 0.5)


def test_cutoff_hides_its_share_of_the_tokens_but_not_their_places() -> None:
    """Once where both sides share a table, and no longer than the block."""
    torch.manual_seed(6)
    params = TransformerParams(**LAYERS)
    table, other = nn.Embedding(9, params.d_model), nn.Embedding(9, params.d_model)
    sides = [TokenEmbedding(each, embedding_positions(params), params) for each in (table, table, other)]
    ids, share = torch.randint(9, (40, 30)), 0.3
    whole = [side(ids) for side in sides]
    with token_cutoff([side.tokens for side in sides], share):
        cut = [side(ids) for side in sides]
    for side, before, after in zip(sides, whole, cut, strict=True):
        changed = (before != after).any(-1)
        assert changed.double().mean().item() == pytest.approx(share, abs=0.05)
        assert torch.equal(after[changed], side.positions(torch.arange(30)).expand(40, 30, -1)[changed])
        assert torch.equal(side(ids), before)
    assert not torch.equal(cut[0], cut[1])  # drawn anew


def test_word_dropout_keeps_the_first_token_and_empty_rows() -> None:
    ids = torch.tensor([[1, 2, 3], [4, PAD, PAD], [PAD, PAD, PAD]])
    assert drop_tokens(ids, PAD, 0.999999).tolist() == [[1, PAD, PAD], [4, PAD, PAD], [PAD] * 3]
    assert drop_tokens(ids, PAD, 0.0) is ids
