"""The attention kernel, compared with equation 1: values and gradients, with masks, additive terms and dropout."""

from typing import Any

import pytest
import torch
from torch import Tensor

from transformer.nn.attention import KeyValue, attention_weights, scaled_dot_product_attention
from transformer.nn.kernels import attention as kernel
from transformer.nn.kernels.attention import attend
from transformer.nn.kernels.dropout import draw_mask

B, H, D = 2, 3, 4
SEEN = torch.tensor([[True] * 6, [True, True, False, True, False, False]])[:, None, None]
UNSEEN = torch.tensor([[True] * 6, [False] * 6])[:, None, None]
CASES: list[dict[str, Any]] = [
    {},
    {"mask": SEEN},
    {"mask": UNSEEN},
    {"causal": True},
    {"causal": True, "mask": SEEN},
    {"bias": True},
    {"bias": True, "mask": SEEN},
    {"bias": True, "causal": True},
]


def heads(length: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(B, H, length, D, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case) or "plain")
@pytest.mark.parametrize("queries", [6, 2, 1])
def test_values_and_gradients_are_those_of_the_equation(
    queries: int, case: dict[str, Any], fused: bool, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer queries than keys make a decoding step: the queries are the last positions."""
    if fused:
        monkeypatch.setattr(kernel, "_FEW_SCORES", 0)
    query, key, value = heads(queries), heads(6), heads(6)
    bias = torch.randn(H, queries, 6, dtype=torch.float64, requires_grad=True) if "bias" in case else None
    mask, causal = case.get("mask"), case.get("causal", False)
    torch.manual_seed(7)
    found = attend(query, key, value, mask, bias=lambda *_: bias, causal=causal, dropout=dropout)
    torch.manual_seed(7)
    weights = attention_weights(query, key, mask, bias=bias, causal=causal)
    if dropout:
        drop = draw_mask(weights, dropout)
        assert (drop.bits == 0).any()
        weights = torch.where(drop.bits != 0, weights * drop.scale, 0.0)
    expected = weights @ value
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    inputs, factors = [query, key, value, *([] if bias is None else [bias])], torch.randn_like(expected)
    gradients = [torch.autograd.grad((result * factors).sum(), inputs) for result in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(H, 5, 5), (5, 5), (1, 5), (B, H, 5, 5)])
def test_the_additive_term_has_a_gradient_in_its_own_shape(shape: tuple[int, ...]) -> None:
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    query, key, value = heads(5), heads(5), heads(5)

    def attended(given: Tensor) -> Tensor:
        return attend(query, key, value, bias=lambda *_: given, causal=True)

    assert torch.autograd.gradcheck(attended, (bias,))


def test_bf16_rounds_and_does_no_more() -> None:
    query, key, value = (heads(6, torch.bfloat16) for _ in range(3))
    exact = scaled_dot_product_attention(query.double(), KeyValue(key.double(), value.double()), SEEN)
    found = attend(query, key, value, SEEN)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=0.05)
