"""The Reformer equals transformers' implementation, and the identities that define it hold."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.builders import reformer
from tests.families.language.stock import stock_reformer
from transformer.nn import hashed
from transformer.nn.hashed import hashed_attention

IDS = torch.randint(5, 30, (2, 24), generator=torch.Generator().manual_seed(1))


def forward(ids: Tensor = IDS, **changes: Any) -> Tensor:
    with torch.inference_mode():
        found: Tensor = reformer(**changes)(ids)
    return found


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("buckets", [2, 8])
def test_states_equal_those_of_transformers(buckets: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts a pair once for each round in which it meets; the paper, as we do, once."""
    monkeypatch.setattr(hashed, "_meetings", lambda chunks, queries, keys: torch.ones(()))
    ours = reformer(buckets=buckets, hash_rounds=rounds)
    ours.encoder.norm = nn.Identity()  # type: ignore[assignment]
    with torch.inference_mode():
        one, two = stock_reformer(ours)(IDS).last_hidden_state.chunk(2, dim=-1)
        torch.testing.assert_close(ours(IDS), (one + two) / 2)


def full(query: Tensor, value: Tensor) -> Tensor:
    """Attention with shared queries and keys, without attention to oneself but for the first token."""
    key = query / (query.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    earlier = torch.ones(scores.shape[-2:]).tril(-1).bool()
    earlier[0, 0] = True
    weights: Tensor = scores.masked_fill(~earlier, -torch.inf).softmax(-1)
    return weights @ value


def tokens(length: int = 24) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    query, value = (torch.randn(2, 3, length, 8, generator=random, dtype=torch.float64) for _ in range(2))
    return query, value


def test_one_bucket_is_attention_to_all_tokens() -> None:
    query, value = tokens()
    for chunk in (12, 24, 50):
        for rounds in (1, 3):
            found = hashed_attention(query, value, torch.zeros(2, 3, rounds, 24, dtype=torch.int64), chunk)
            torch.testing.assert_close(found, full(query, value))


def test_many_rounds_converge_to_attention_to_all_tokens() -> None:
    query, value = tokens()
    wanted, errors = full(query, value), []
    for rounds in (1, 2, 4, 32):
        buckets = torch.randint(4, (2, 3, rounds, 24), generator=torch.Generator().manual_seed(0))
        errors.append(float((hashed_attention(query, value, buckets, 6) - wanted).abs().mean()))
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-12


@pytest.mark.parametrize("changes", [{}, {"feed_forward_chunk": 5}], ids=str)
def test_outputs_and_gradients_equal_those_of_plain_autograd(changes: dict[str, Any]) -> None:
    encoder: Any = reformer(**changes).encoder
    states = torch.randn(2, 24, 16, dtype=torch.float64, requires_grad=True)
    layers: list[Any] = [*encoder.layers]
    one = two = states
    for layer in layers:
        generator = torch.Generator().manual_seed(encoder.seed)
        buckets = layer.attention.hashes(two, encoder.hashing, generator, None)
        one = one + layer.attention(two, encoder.hashing, buckets)
        two = two + layer.feed_forward(one)
    plain = encoder.norm((one + two) / 2)
    found = encoder(states, None)
    torch.testing.assert_close(found, plain)
    variables = [states, *encoder.parameters()]
    weights = torch.randn_like(plain)
    for own, theirs in zip(*(torch.autograd.grad(each, variables, weights) for each in (found, plain)), strict=True):
        torch.testing.assert_close(own, theirs)


def test_dropout_is_the_same_in_both_passes() -> None:
    """Otherwise the recomputed inputs, and with them the gradients, would be others than those of the loss."""
    model = reformer(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1, layers=3).train()
    torch.manual_seed(1)
    states = torch.randn(2, 24, 16, dtype=torch.float64, requires_grad=True)

    def loss(given: Tensor) -> Tensor:
        torch.manual_seed(7)
        found: Tensor = model.encoder(given, None)
        return found[..., :3].square().sum()  # of all, layer normalization makes nearly a constant

    direction = torch.randn_like(states)
    (gradient,) = torch.autograd.grad(loss(states), states)
    change = (loss(states + 1e-6 * direction) - loss(states - 1e-6 * direction)) / 2e-6
    torch.testing.assert_close((gradient * direction).sum(), change, rtol=1e-4, atol=0.0)


def test_no_token_sees_a_later_one_in_its_chunks() -> None:
    query, value = tokens()
    buckets = torch.randint(4, (2, 3, 2, 24), generator=torch.Generator().manual_seed(0))
    changed = value.clone()
    changed[:, :, 15:] += 1.0
    before, after = (hashed_attention(query, each, buckets, 4) for each in (value, changed))
    assert torch.equal(before[:, :, :15], after[:, :, :15]) and not torch.allclose(before[:, :, 15:], after[:, :, 15:])


@pytest.mark.parametrize("length", [3, 4, 9, 17])
def test_a_text_has_the_same_states_alone_and_in_a_batch(length: int) -> None:
    ids = IDS.clone()
    ids[0, length:] = 0
    torch.testing.assert_close(forward(ids)[0, :length], forward(ids[:1, :length])[0])


def test_a_generated_token_is_the_whole_texts() -> None:
    model, rows = reformer(), torch.tensor([1, 0, 1])
    with torch.inference_mode():
        cache = model.start(IDS[:, :7])
        cache.select(rows)
        for place in range(7, 12):
            states = model.step(IDS[rows, place], cache)
            torch.testing.assert_close(states, model(IDS[:, : place + 1])[rows, -1])
