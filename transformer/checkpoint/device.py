"""Where to compute, and how precisely."""

import ctypes
import os
import platform
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from transformer.core.errors import UserError
from transformer.core.schema import Hardware


@dataclass(frozen=True)
class Compute:
    """A device and a precision that it has."""

    device: torch.device
    precision: str
    """`fp32` or `bf16`."""
    repeatable: bool = True
    """Whether the same computation gives the same bits again."""

    def autocast(self) -> AbstractContextManager[object]:
        """The context of a training step's forward pass."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def prepare(hardware: Hardware) -> Compute:
    """Choose the device and precision, set the threads, and make kernels repeatable where `hardware` says so.

    Raises UserError when the device or precision is not to be had here.
    """
    torch.set_num_threads(hardware.threads)
    _keep_freed_memory()
    _keep_few_kernels()
    device = torch.device(_available(hardware.device))
    repeatable = device.type == "cpu" or (device.type == "cuda" and hardware.deterministic)
    if repeatable:
        # cuBLAS reads it when it starts, so before the first product.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(repeatable)
    # Repeatable kernels write all of their outputs; filling memory beforehand costs a tenth of the step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a property
    return Compute(device, _precision(hardware.precision, device), repeatable)


def _keep_freed_memory() -> None:
    """Let glibc reuse large blocks: returned to the kernel, their page faults cost a tenth of a step."""
    if libc := _glibc():
        trim_threshold, mmap_max = -1, -4  # malloc.h
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_max, 0)


def _keep_few_kernels() -> None:
    """Let oneDNN keep the products of about three updates, in place of the last 1,024 products, unless told otherwise.

    Every batch has another number of tokens, so products of earlier batches hardly come again. Each kept one holds
    dozens of blocks of 258 KB and many small ones. They lie between the free blocks of the heap, which split into ever
    more pieces: finding one took a sixth of an update, and memory grew. oneDNN reads the variable at its first product.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def return_freed_memory() -> None:
    """Give freed blocks back to the kernel, once in a while: of batches of many sizes, pieces stay free for ever.

    With the profile `paper` a process grew to 7.5 GB in an epoch of 60 s, and by 0.4 GB an epoch; this leaves 2.3 GB
    and takes 0.15 s.
    """
    if libc := _glibc():
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


def has_device(kind: str) -> bool:
    """Whether there is a device of this kind (cuda, mps, cpu) here."""
    if kind == "cuda":
        return torch.cuda.is_available()
    return torch.backends.mps.is_available() if kind == "mps" else kind == "cpu"


def _available(wanted: str) -> str:
    if wanted == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if has_device(kind))
    if not has_device(wanted):
        raise UserError(f"hardware.device is `{wanted}`, but there is no such device here: set it to `auto` or `cpu`")
    return wanted


def _precision(wanted: str, device: torch.device) -> str:
    bf16 = torch.cuda.is_bf16_supported() if device.type == "cuda" else _cpu_has_bf16() and device.type == "cpu"
    if wanted == "auto":
        return "bf16" if bf16 else "fp32"
    if wanted == "bf16" and device.type == "cuda" and not bf16:
        raise UserError("hardware.precision is `bf16`, but this GPU has none: set it to `auto` or `fp32`")
    return wanted


def _cpu_has_bf16() -> bool:
    """Units for bf16 matrix products; without them bf16 is emulated and slow."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
