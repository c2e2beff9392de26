"""Devices, precision, threads: what computes, and how."""

import ctypes
import os
import platform
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.process import usable_cores
from transformer.core.validation import Hardware, Runtime

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
_turn = threading.RLock()


@dataclass(frozen=True)
class Compute:
    """A device and a supported precision."""

    device: torch.device
    precision: str
    """`fp32` or `bf16`."""
    repeatable: bool = True
    """True if the same computation always gives the same bits."""

    def autocast(self) -> AbstractContextManager[object]:
        """Return the autocast context for the forward pass of a training step."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def prepare(hardware: Hardware) -> Compute:
    """Check device and precision, set the number of threads, and enable deterministic kernels if requested.

    Raises UserError when the device or precision is not available.
    """
    torch.set_num_threads(hardware.threads)
    _keep_freed_memory()
    _keep_few_kernels()
    if not has_device(hardware.device):
        raise UserError(f"hardware.device is `{hardware.device}`, but no such device is available: set it to `cpu`")
    if hardware.precision == "bf16" and hardware.device == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError("hardware.precision is `bf16`, but this GPU does not support it: set it to `fp32`")
    device = torch.device(hardware.device)
    repeatable = device.type == "cpu" or (device.type == "cuda" and hardware.deterministic)
    if repeatable:
        # cuBLAS reads it at initialisation, before the first matrix product.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # The same for all kernels as `use_deterministic_algorithms`, which also imports the compiler, in two seconds.
    torch.set_deterministic_debug_mode("error" if repeatable else "default")
    # Deterministic kernels write all of their outputs; filling memory beforehand costs a tenth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a property
    return Compute(device, hardware.precision, repeatable)


def _keep_freed_memory() -> None:
    """Keep glibc from returning large blocks to the kernel: the page faults would cost a tenth of a step."""
    if libc := _glibc():
        trim_threshold, mmap_max = -1, -4  # malloc.h
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_max, 0)


def _keep_few_kernels() -> None:
    """Limit oneDNN's cache to the kernels of about three updates instead of the last 1,024, unless already set.

    Every batch has a different number of tokens, so kernels of earlier batches are hardly ever reused. Each cached one
    keeps dozens of blocks of 258 KB and many small ones, which fragment the heap: finding a free block took a sixth of
    an update, and memory grew. oneDNN reads the variable at its first matrix product.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def return_freed_memory() -> None:
    """Return freed blocks to the kernel: batches of varying size fragment the heap, and glibc never shrinks it itself.

    With the profile `paper` a process grew to 7.5 GB in an epoch of 60 s, and by 0.4 GB per epoch; this brings it down
    to 2.3 GB and takes 0.15 s.
    """
    if libc := _glibc():
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


def has_device(kind: str) -> bool:
    """True if a device of this kind (cuda, mps, cpu) is available."""
    if kind == "cuda":
        return torch.cuda.is_available()
    return torch.backends.mps.is_available() if kind == "mps" else kind == "cpu"


def inference_device(name: str) -> torch.device:
    """Return an exported model's device; `auto` prefers CUDA. Raises UserError if it is not available."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not has_device(name):
        raise UserError(f"device `{name}` is not available: use `auto` or `cpu`")
    return torch.device(name)


# torch's threads do not survive a fork, and the child would wait for them forever: use a single thread
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def loses_by_bf16() -> bool:
    """True if the CPU multiplies matrices more slowly in bf16 than in fp32.

    Without such instructions bf16 is emulated. Intel's AVX-512 ones take longer than fp32's; its AMX ones, which a
    virtual machine may hide, do not, nor do AMD's AVX-512 ones (docs/performance.md).
    """
    cpu = torch.cpu.get_capabilities()
    amx, avx512 = cpu.get("amx_bf16", False), cpu.get("avx512_bf16", False)
    return not (amx or (avx512 and "intel" not in cpu.get("cpu_name", "").lower()))


def _renew() -> None:
    """Replace the lock in a forked child: a thread of the parent may have held it."""
    global _turn
    _turn = threading.RLock()


os.register_at_fork(after_in_child=_renew)


def in_turns(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Serialize calls to a function across threads; outside the main thread, run it on one core.

    Every thread that calls PyTorch gets a team of OpenMP threads. More of them than cores take turns at every product:
    four requests at once took twice the time of one after the other, and a single one outside of the main thread, too.
    """

    @wraps(function)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with _turn:
            if threading.current_thread() is threading.main_thread():
                return function(*args, **kwargs)
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                return function(*args, **kwargs)
            finally:
                torch.set_num_threads(before)

    return alone


def with_own_cores(runtime: Runtime, threads: int) -> Runtime:
    """Limit the workers to the available cores, given threads per worker; 0 if only one would fit.

    Threads that wait for each other at every product make two workers several times slower than one process. On a
    Ray cluster that is not this machine the cores are not known.
    """
    most = usable_cores() // threads
    if runtime.workers <= max(most, 1) or _joins_a_cluster(runtime):
        return runtime
    return runtime.model_copy(update={"workers": most if most > 1 else 0})


def shared_cores(runtime: Runtime, threads: int) -> str | None:
    """Return a warning if the trainers' threads exceed the available cores; else None."""
    size, cores = runtime.trainers, usable_cores()
    if size * threads <= cores or size < 2:
        return None
    return (
        f"warning: {size} trainers with {threads} threads each share {cores} cores, which is slow: lower"
        " runtime.trainers or hardware.threads (which changes the last bits of the result)"
    )


def _joins_a_cluster(runtime: Runtime) -> bool:
    return runtime.engine == "ray" and bool(runtime.address or os.environ.get("RAY_ADDRESS"))


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device; on CUDA from pinned memory, so that the copy is asynchronous."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=device.type == "cuda")
