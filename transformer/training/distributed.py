"""The processes of one training run, started by torchrun or by us: all run the same program, only rank 0 writes.

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
"""Timeout for collective operations, such as waiting for slow starters; a process that exits is noticed at once."""
_MEETING = "TRANSFORMER_MEETING"
"""Environment variable of processes started here: their rendezvous file (TCPStore would open a port)."""
_POLL = timedelta(seconds=1)


class LostError(Exception):
    """Another process of the group has ended."""


class ProcessGroup:
    """Process group that computes the parts of each update; this base class has a single process."""

    rank, size = 0, 1

    def any(self, flag: bool) -> bool:
        """True if the flag is set in any process. Raises LostError."""
        return flag

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes by rank; all must have the same shape. Raises LostError."""
        return [tensor]


class Connected(ProcessGroup):
    """Process group over torch.distributed: gloo, and NCCL between GPUs. It only moves bytes."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def any(self, flag: bool) -> bool:
        """True if the flag is set in any process. Raises LostError."""
        return any(bool(each) for each in self.gather(torch.tensor([flag])))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes by rank. Raises LostError."""
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        try:
            dist.all_gather(gathered, tensor)
        except RuntimeError as error:  # its subclasses differ per backend
            raise LostError(" ".join(str(error).split())) from error
        return gathered


def rank() -> int:
    """Return this process's rank as set by torchrun; 0 for a single process."""
    return int(os.environ.get("RANK", "0"))


@contextmanager
def process_group(trainers: int, device: torch.device, key: str) -> Iterator[ProcessGroup]:
    """Open the process group of a training run: torchrun's, or one of `trainers` local processes, which it starts.

    key: the `training_key`, in hexadecimal digits. Raises UserError when a process cannot start, or trains otherwise.
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
        group = Connected(dist.get_rank(), dist.get_world_size())
        own = torch.tensor([*bytes.fromhex(key)], dtype=torch.uint8)
        if not all(other.equal(own) for other in group.gather(own)):
            raise UserError("the training processes have different parameters, inputs or code: run it again")
        yield group


def _start_others(size: int, backend: str, stack: ExitStack) -> None:
    """Start processes 1 to size - 1 with this process's command and connect to them, not listening on the network."""
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
    """Wait until all processes have joined. Raises UserError with the last output line of one that exited early."""
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
    """Prepare a process of rank above 0 before it opens its data: it ignores signals and exits with rank 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # signals may reach all processes at once
    if _MEETING in os.environ:
        Thread(target=_end_with_leader, daemon=True).start()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def _end_with_leader() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
