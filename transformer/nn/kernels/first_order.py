"""Guard for autograd functions that support only first derivatives."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def first_order(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose own derivative would be wrong: with `create_graph=True` it raises RuntimeError.

    PyTorch's `once_differentiable` raises only if the incoming gradient itself requires a gradient, so not for a
    gradient penalty or a Hessian of the loss.
    """

    @wraps(backward)
    def guarded(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(f"{backward.__qualname__} has no second derivative: leave out create_graph=True")
        return backward(ctx, *gradients)

    return guarded
