"""The portable products are PyTorch's, and so are their gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.nn.kernels import linear as kernel
from transformer.nn.kernels.linear import Linear, even

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this build of PyTorch has no oneDNN"
)


@pytest.fixture(autouse=True)
def portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PORTABLE", True)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(6,), (1, 6), (7, 6), (3, 5, 6), (1000, 6), (0, 6)])
@pytest.mark.parametrize("outputs", [3, 17])
def test_a_layer_is_pytorchs(shape: tuple[int, ...], outputs: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer, states = Linear(6, outputs, bias=bias), torch.randn(shape, requires_grad=True)
    weights = torch.randn(*shape[:-1], outputs)
    given = [states, *layer.parameters()]
    found = layer(states)
    expected = F.linear(states, layer.weight, layer.bias)
    torch.testing.assert_close(found, expected)
    gradients: list[tuple[Tensor, ...]] = [torch.autograd.grad((y * weights).sum(), given) for y in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-5)


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    layer, states = Linear(100, 37), torch.randn(300, 100)
    together = layer(states)
    for rows in (1, 2, 9, 150):
        assert torch.equal(layer(states[:rows]), together[:rows])


def test_other_types_are_computed_by_pytorch() -> None:
    layer, states = Linear(6, 4).double(), torch.randn(3, 6, dtype=torch.float64)
    assert torch.equal(layer(states), F.linear(states, layer.weight, layer.bias))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Linear(6, 4)(torch.randn(3, 6)).dtype == torch.bfloat16


def test_numbers_of_rows_are_rounded_up_a_little() -> None:
    assert [even(rows) for rows in (0, 1, 8, 9, 250, 257, 1900)] == [0, 8, 8, 16, 256, 272, 1920]
