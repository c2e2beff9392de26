"""The processes of one training run, as torchrun starts them: all run the same program, and only rank 0 writes.

Without torchrun, `runtime.trainers` processes of this machine are started here, with the variables that it sets.
"""

import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Thread
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import Tensor

from transformer.core.errors import UserError

_PATIENCE = timedelta(days=1)
"""Of a process that waits, such as for the others' start; one that ends is noticed at once."""
_MEETING = "TRANSFORMER_MEETING"
"""Set in processes that were started here: the file where they meet. torch's TCPStore would listen to the network."""
_POLL = timedelta(seconds=1)


class LostError(Exception):
    """Another process of the group has ended."""


class ProcessGroup:
    """Processes that compute the parts of each update; this one alone."""

    rank, size = 0, 1

    def any(self, flag: bool) -> bool:
        """Whether one of the processes says so. Raises LostError."""
        return flag

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, by rank; all have the same shape. Raises LostError."""
        return [tensor]


class Connected(ProcessGroup):
    """Processes that torch.distributed connects: by gloo, and NCCL between GPUs. It only moves bytes."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def any(self, flag: bool) -> bool:
        """Whether one of the processes says so. Raises LostError."""
        return any(bool(each) for each in self.gather(torch.tensor([flag])))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, by rank. Raises LostError."""
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        try:
            dist.all_gather(gathered, tensor)
        except RuntimeError as error:  # its subclasses differ between backends
            raise LostError(" ".join(str(error).split())) from error
        return gathered


def rank() -> int:
    """The number of this process in its training run, as torchrun says; 0 for one alone."""
    return int(os.environ.get("RANK", "0"))


@contextmanager
def process_group(trainers: int, device: torch.device) -> Iterator[ProcessGroup]:
    """The group of a training run: torchrun's, else of `trainers` processes of this machine, which it starts.

    Raises UserError when one of them cannot start.
    """
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    with ExitStack() as stack:
        if meeting := os.environ.get(_MEETING):
            size = int(os.environ["WORLD_SIZE"])
            store = dist.FileStore(meeting, size)  # type: ignore[attr-defined]
            store.set(f"here {rank()}", "")
            dist.init_process_group(backend, store=store, rank=rank(), world_size=size, timeout=_PATIENCE)
        elif "RANK" in os.environ:
            dist.init_process_group(backend, timeout=_PATIENCE)
        elif trainers > 1:
            _start_others(trainers, backend, stack)
        else:
            yield ProcessGroup()
            return
        stack.callback(dist.destroy_process_group)
        yield Connected(dist.get_rank(), dist.get_world_size())


def _start_others(size: int, backend: str, stack: ExitStack) -> None:
    """Start processes 1 to size - 1 with this one's command, and connect with them; they listen to no other machine."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if platform.system() == "Darwin" else "lo")
    meeting = f"{stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))}/meeting"
    store = dist.FileStore(meeting, size)  # type: ignore[attr-defined]
    main = sys.modules["__main__"].__spec__
    assert main is not None
    command = [sys.executable, "-m", main.name.removesuffix(".__main__"), *sys.argv[1:]]
    started = []
    for number in range(1, size):
        said = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        env = {**os.environ, "WORLD_SIZE": str(size), "RANK": str(number), "LOCAL_RANK": str(number), _MEETING: meeting}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, env=env)
        stack.callback(_end, process)
        started.append((process, said))
    _connect(store, size, backend, started)


def _connect(
    store: Any, size: int, backend: str, started: Sequence[tuple["subprocess.Popen[bytes]", IO[bytes]]]
) -> None:
    """Wait until all are there. Raises UserError with the last line of one that ended before."""
    while True:
        try:
            store.wait([f"here {number}" for number in range(1, size)], _POLL)
            break
        except RuntimeError:
            for process, said in started:
                if process.poll() is not None:
                    said.seek(0)
                    last = said.read().decode(errors="replace").strip().splitlines()[-1:]
                    raise UserError(
                        f"a training process did not start: {' '.join(last) or process.returncode}"
                    ) from None
    dist.init_process_group(backend, store=store, rank=0, world_size=size, timeout=_PATIENCE)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()  # it has nothing to finish
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def join() -> None:
    """Prepare a process of rank above 0, before it opens its data: it leaves signals to rank 0, and ends with it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they may reach all at once
    if _MEETING in os.environ:
        Thread(target=_end_with_leader, daemon=True).start()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def _end_with_leader() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
