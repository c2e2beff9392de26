"""The batches of an epoch: every row once, no batch too large, a new order every epoch."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.line import params
from transformer.training.batches import pieces_of_like_length, random_batches


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=400), st.integers(1, 120), st.integers(0, 3))
def test_an_epoch_holds_every_row_once(lengths: list[int], batch_size: int, epoch: int) -> None:
    sizes = np.array(lengths)
    for unit in ("rows", "tokens"):
        chosen = params(batch_size=batch_size, batch_unit=unit)
        batches = random_batches(sizes, chosen, epoch)
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        again = random_batches(sizes, chosen, epoch)
        assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in again]
        for batch in batches:
            size = len(batch) if unit == "rows" else int(sizes[batch].sum())
            assert size <= batch_size or len(batch) == 1


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_no_piece_of_a_batch_takes_more_with_its_padding(lengths: list[int]) -> None:
    """Where batches are padded, on GPUs."""
    sizes, chosen = np.array(lengths), params(batch_size=60, batch_unit="tokens")
    for rows in random_batches(sizes, chosen, 1):
        pieces = pieces_of_like_length(rows, sizes, chosen)
        assert sorted(np.concatenate(pieces).tolist()) == sorted(rows.tolist())
        assert all(len(piece) * sizes[piece].max() <= 60 for piece in pieces)


def test_epochs_and_seeds_differ() -> None:
    lengths = np.ones(100, dtype=np.int64)
    orders = [np.concatenate(random_batches(lengths, params(seed=s), e)).tolist() for s, e in ((1, 1), (1, 2), (2, 1))]
    assert len({tuple(order) for order in orders}) == 3
