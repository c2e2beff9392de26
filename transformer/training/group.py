"""The processes of one training run, as an update sees them."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

_PATIENCE = timedelta(days=1)
"""Of a process that waits, such as for the validation; one that ends is noticed at once."""
_MEETING = timedelta(minutes=2)
"""In which the others, who are ready, have to meet the first: it cannot be interrupted, nor notice their end."""


class LostError(Exception):
    """Another process of the group has ended."""


class Order(NamedTuple):
    """The next update, which the first process orders of the others; all are exact in float64."""

    epoch: int
    number: int
    """Of the update in its epoch, from 0."""
    step: int
    rate: float
    """The learning rate."""


class Group(Protocol):
    """A number of processes that compute the parts of each update; the first leads."""

    @property
    def rank(self) -> int:
        """The number of this process."""

    @property
    def size(self) -> int:
        """The number of processes."""

    def any(self, flag: bool) -> bool:
        """Whether one of the processes says so. Raises LostError."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, by rank; all have the same shape. Raises LostError."""


class Alone:
    """A group of one process."""

    rank, size = 0, 1

    def any(self, flag: bool) -> bool:
        """As `Group.any`."""
        return flag

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """As `Group.gather`."""
        return [tensor]


class Connected:
    """Processes that torch.distributed connects: by gloo, and NCCL between GPUs. It only moves bytes."""

    def __init__(self, meeting: str, rank: int, size: int, device: torch.device) -> None:
        """meeting: a file that all processes see, or HOST:PORT where the first one can listen.

        The first one comes once the others are ready. Raises LostError.
        """
        self.rank, self.size = rank, size
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        with _lost():
            store = _store(meeting, rank, size)
            store.set(f"here {rank}", "")
            if rank == 0:
                store.wait([f"here {each}" for each in range(size)], _MEETING)
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)

    def any(self, flag: bool) -> bool:
        """As `Group.any`."""
        return any(bool(each) for each in self.gather(torch.tensor([flag])))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """As `Group.gather`."""
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        with _lost():
            dist.all_gather(gathered, tensor)
        return gathered

    def lead(self, order: Order) -> None:
        """Order an update of all other processes. Raises LostError."""
        with _lost():
            dist.broadcast(torch.tensor(order, dtype=torch.float64), 0)

    def follow(self) -> Order:
        """The next order. Raises LostError when the first process has ended, or needs the others no longer."""
        order = torch.zeros(len(Order._fields), dtype=torch.float64)
        with _lost():
            dist.broadcast(order, 0)
        epoch, number, step, rate = order.tolist()
        return Order(int(epoch), int(number), int(step), rate)

    def share(self, state: Any = None) -> Any:
        """Give what the first process has, plain values and tensors, to all others. Raises LostError."""
        content = [state]
        with _lost():
            dist.broadcast_object_list(content, 0, device=torch.device("cpu"))
        return content[0]

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()


def only_here() -> None:
    """Let the processes of a group on this machine listen to no other."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if platform.system() == "Darwin" else "lo")


def _store(meeting: str, rank: int, size: int) -> Any:
    host, colon, port = meeting.rpartition(":")
    if colon and port.isdigit():
        return dist.TCPStore(host, int(port), size, rank == 0, wait_for_workers=False)  # type: ignore[attr-defined]
    return dist.FileStore(meeting, size)  # type: ignore[attr-defined]


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # its subclasses differ between backends
        raise LostError(" ".join(str(error).split())) from error
