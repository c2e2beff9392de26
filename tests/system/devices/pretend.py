"""A simulated device: its tensors are computed on the CPU, but kept apart from the CPU's like a GPU's.

It shows what would be executed: which operators, on which types, from which device, and where the host would wait. It
does not show whether a device has a kernel for them, nor what that computes. Needs torch 2.13, whose Python backends
have their own device in the backward pass.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

KIND = "pretend"
_aten = torch.ops.aten
_WAITING = (_aten._local_scalar_dense.default, _aten.nonzero.default, _aten.masked_select.default, _aten.equal.default)
"""Operators whose result, or its size, the host needs to know."""
_WITH_INDICES = (_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default)
_RAISING = ("nll_loss2d_forward", "nll_loss2d_backward", "_embedding_bag_dense_backward", "put_", "histc")
_BETWEEN_DEVICES = (_aten._to_copy.default, _aten.copy_.default)


@cache
def device() -> torch.device:
    """The device, set up by the first call."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(KIND)
    return torch.device(KIND, 0)


class PretendTensor(torch.Tensor):
    """A tensor on the simulated device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "PretendTensor":
        made: PretendTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=device(),
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:
        """As for any tensor; subclasses lack it."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class Pretend(TorchDispatchMode):
    """While active, the device exists, and counts the operators for which the host would wait."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        here = [leaf for leaf in leaves if isinstance(leaf, PretendTensor)]
        if not here and not _names_the_device(kwargs):
            return func(*args, **kwargs)
        if here and _waits(func, args, kwargs):
            self.waits[str(func)] += 1
        found = _run(func, args, kwargs)
        _refuse(func, [*leaves, *tree_flatten(found)[0]])
        return found


def _names_the_device(kwargs: dict[str, Any]) -> bool:
    return kwargs.get("device") is not None and torch.device(kwargs["device"]).type == KIND


def _waits(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    if func in _WITH_INDICES:
        return any(isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    leaves = "device" in kwargs and not _names_the_device(kwargs) and not kwargs.get("non_blocking")
    return func in _WAITING or (func is _aten._to_copy.default and leaves)


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
    here = [leaf for leaf in tensors if isinstance(leaf, PretendTensor)]
    if here and func not in _BETWEEN_DEVICES:
        _refuse_mixed(func, args, tensors)
    stays = _names_the_device(kwargs) if kwargs.get("device") is not None else bool(here)
    if func is _aten.copy_.default:
        stays = isinstance(args[0], PretendTensor)
    if "device" in kwargs:
        kwargs = kwargs | {"device": torch.device("cpu")}
    found = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    if func is _aten._local_scalar_dense.default or not stays:
        return found
    owners = {id(tensor.held): tensor for tensor in here}  # in-place operators return the same tensor
    return tree_map(lambda leaf: _on_device(leaf, owners), found)


def _on_device(leaf: Any, owners: dict[int, PretendTensor]) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return owners[id(leaf)] if id(leaf) in owners else PretendTensor(leaf)


def _refuse_mixed(func: Any, args: Any, tensors: list[Tensor]) -> None:
    """Like a GPU, accept a tensor of another device only as a number, or as the index of an access."""
    indices = {id(index) for index in args[1]} if func in _WITH_INDICES else set()
    for tensor in tensors:
        if not isinstance(tensor, PretendTensor) and tensor.dim() and id(tensor) not in indices:
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, found {KIND} and cpu")


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, PretendTensor) else leaf


def _refuse(func: Any, leaves: list[Any]) -> None:
    """Raise TypeError as MPS does, which has no float64, and RuntimeError as CUDA does with `hardware.deterministic`.

    The operators are those of the documentation of `torch.use_deterministic_algorithms` in torch 2.13, "operations will
    throw a RuntimeError when mode=True", without those on images.
    """
    here = [leaf for leaf in leaves if isinstance(leaf, PretendTensor)]
    if any(tensor.dtype == torch.float64 for tensor in here):
        raise TypeError(f"{func}: MPS does not support float64")
    name = func._schema.name.removeprefix("aten::")
    summed = name in ("cumsum", "cumsum_") and any(tensor.is_floating_point() for tensor in here)
    if here and (name in _RAISING or summed or (name == "median" and func._overloadname == "dim")):
        raise RuntimeError(f"{name} does not have a deterministic implementation")


@contextmanager
def pretending() -> Iterator[Pretend]:
    """The device exists."""
    device()
    with Pretend() as pretend:
        yield pretend
