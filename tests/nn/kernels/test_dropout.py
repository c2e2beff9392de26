"""The dropout kernel: the share it drops, the mean it keeps, and PyTorch's own formula with the same mask."""

import pytest
import torch

from transformer.nn.kernels.dropout import draw_mask, dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_drops_its_share_and_keeps_the_mean(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    size = 1_000_003  # not a multiple of the lanes of a draw
    dropped = dropout(torch.ones(size, dtype=dtype), probability)
    five_sigma = 5 * (probability * (1 - probability) / size) ** 0.5
    assert dropped.eq(0).double().mean().item() == pytest.approx(probability, abs=five_sigma + 1e-5)
    assert dropped.dtype == dtype
    kept = dropped[dropped != 0]
    assert kept.min().item() == kept.max().item() == pytest.approx(1 / (1 - probability), rel=5e-3)


def test_gradients_pass_where_values_pass() -> None:
    states = torch.ones(1000, requires_grad=True)
    dropped = dropout(states, 0.3)
    dropped.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert torch.equal(states.grad, dropped)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_mask_is_a_choice_between_scaled_values_and_zero(dtype: torch.dtype) -> None:
    states = torch.randn(3, 41, dtype=dtype)
    mask = draw_mask(states, 0.3)
    assert torch.equal(mask(states), torch.where(mask.bits != 0, states * mask.scale, 0.0))
    assert mask.scale * (1 - round(0.3 * 2**15) / 2**15) == pytest.approx(1, abs=1e-12)
