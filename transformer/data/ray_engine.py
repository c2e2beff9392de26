"""Workers and training processes as Ray actors, on one machine or a cluster.

Only Ray Core: the order of items and the sums of gradients are this project's own, so Ray cannot change a byte.
"""

import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
import ray
from ray._private import services
from ray.exceptions import RayError, RayTaskError

from transformer.core.code import own_code
from transformer.core.errors import UserError
from transformer.core.portable import PINS
from transformer.core.validation import Runtime

_STORE = 256 * 2**20
"""Bytes of shared memory for objects of a private cluster; Ray would take 30 % of the memory."""
HERE = "127.0.0.1"
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # otherwise it sends usage statistics
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@contextmanager
def joined(runtime: Runtime, cores: int) -> Iterator[None]:
    """Connect to the cluster at `runtime.address`, else RAY_ADDRESS, else a private one on this machine.

    cores: of a private cluster. Raises UserError when there is no such cluster, or its versions differ.
    """
    address = address_of(runtime)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    private: dict[str, Any] = {"address": "local", "num_cpus": cores, "object_store_memory": _STORE}
    private |= {"include_dashboard": False, "_node_ip_address": HERE}
    logging.getLogger("ray").setLevel(logging.ERROR)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    pins = {name: os.environ[name] for name in PINS if name in os.environ}
    joining = {"address": address, "runtime_env": {"env_vars": pins}}  # its processes compute as this one does
    before = _children()
    try:
        _require_listening(address)
        with nullcontext() if address else _loopback():
            ray.init(**(joining if address else private), **quiet)
    except (RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"the Ray cluster at {address}" if address else "a private Ray cluster"
        raise UserError(f"{where} cannot be used: {one_line(error)}; see runtime.engine and runtime.address") from error
    try:
        with nullcontext() if address else _ending_with_stage(_children() - before):
            yield
    finally:
        ray.shutdown()


_AFTERWARDS = """
import sys
import psutil
processes = [psutil.Process(int(pid)) for pid in sys.argv[1:] if psutil.pid_exists(int(pid))]
sys.stdin.read()
for process in processes:
    if process.is_running():
        process.kill()
"""


@contextmanager
def _ending_with_stage(processes: set[psutil.Process]) -> Iterator[None]:
    """End these processes when this one exits for any reason: after `kill -9`, Ray's agents would stay for a minute.

    A separate process waits for the end of its input, which the system closes.
    """
    command = sys.executable, "-c", _AFTERWARDS, *(str(each.pid) for each in processes)
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as waiting:
        try:
            yield
        finally:
            waiting.kill()


def _children() -> set[psutil.Process]:
    """Return this process's descendants."""
    return set(psutil.Process().children(recursive=True))


def address_of(runtime: Runtime) -> str | None:
    """Return the address of the cluster to join; None for a private one."""
    return runtime.address or os.environ.get("RAY_ADDRESS")


@contextmanager
def _loopback() -> Iterator[None]:
    """Make a private cluster listen on 127.0.0.1: Ray would use the machine's external address, and open ports."""
    before = services.resolve_ip_for_localhost, services.get_node_ip_address
    services.resolve_ip_for_localhost = lambda host: host
    services.get_node_ip_address = lambda *_: HERE
    try:
        yield
    finally:
        services.resolve_ip_for_localhost, services.get_node_ip_address = before


def _require_listening(address: str | None) -> None:
    """Raise OSError if nothing listens, or ValueError for an invalid address; Ray itself would retry for minutes."""
    if address and address != "auto":
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=10).close()


def one_line(error: BaseException) -> str:
    """Return the error's message, shortened."""
    return " ".join(str(error).split())[:200]


Item = TypeVar("Item")
Result = TypeVar("Result")
_WAIT = 60.0
"""Seconds to wait for a replacement of a lost machine."""


class _Actor:
    """A worker; its initializer's state persists between items."""

    def __init__(self, root: str, code: str, initializer: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._trouble = ""
        with suppress(OSError):
            os.chdir(root)
        if Path.cwd() != Path(root):
            self._trouble = f"the folder {root} is missing on {socket.gethostname()}: share it with all machines"
        elif own_code() != code:
            self._trouble = f"the code on {socket.gethostname()} is not that of this machine: update it"
        else:
            initializer(*arguments)

    def run(self, function: Callable[[Item], Result], item: Item) -> Result:
        """Process an item."""
        if self._trouble:
            raise UserError(self._trouble)
        return function(item)


@contextmanager
def workers(
    runtime: Runtime, initializer: Callable[..., None], arguments: tuple[Any, ...], ahead: int
) -> Iterator["_Actors"]:
    """Run worker processes as actors with one core each; ahead: items per actor that are given out before their turn.

    Raises UserError when the cluster has too few cores: Ray would wait for them forever.
    """
    with joined(runtime, runtime.workers):
        actor = ray.remote(num_cpus=1)(_Actor)
        given = str(Path.cwd()), own_code(), initializer, arguments
        actors = _Actors(runtime, lambda: actor.remote(*given), ahead)
        try:
            yield actors
        finally:
            actors.forget()


class _Held(NamedTuple):
    """An item assigned to an actor, and the reference of its result."""

    actor: int
    item: Any
    reference: Any


class _Actors:
    """A `map` over actors, which take items in turn.

    A lost actor is recreated here: Ray's own retries are used up immediately, while it still considers the lost
    machine available.
    """

    def __init__(self, runtime: Runtime, make: Callable[[], Any], ahead: int) -> None:
        self._count, self._retries, self._make, self._ahead = runtime.workers, runtime.retries, make, ahead
        self._require_cores(wait=0)
        self._actors = [make() for _ in range(self._count)]

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Map the function over the items, in order."""
        waiting: deque[_Held] = deque()
        for number, item in enumerate(items):
            waiting.append(self._given(function, number % self._count, item))
            if len(waiting) >= self._count * self._ahead:
                yield self._first(function, waiting)
        while waiting:
            yield self._first(function, waiting)

    def forget(self) -> None:
        """Drop the actors, before the cluster ends.

        Ray numbers the actors of each private cluster alike: a handle deleted after the next cluster has started
        would end one of that cluster's actors.
        """
        self._actors.clear()

    def _given(self, function: Callable[[Item], Result], actor: int, item: Item) -> _Held:
        return _Held(actor, item, self._actors[actor].run.remote(function, item))

    def _first(self, function: Callable[[Item], Result], waiting: deque[_Held]) -> Any:
        while True:
            lost = waiting[0].actor
            try:
                result = _found(waiting[0].reference)
            except RayTaskError:
                raise
            except RayError as error:
                self._replace(lost, error)
                again = [self._given(function, *held[:2]) if held.actor == lost else held for held in waiting]
                waiting.clear()
                waiting.extend(again)
            else:
                waiting.popleft()
                return result

    def _replace(self, lost: int, error: RayError) -> None:
        if not self._retries:
            raise UserError(
                f"a worker of Ray was lost more often than runtime.retries allows ({one_line(error)}), perhaps because"
                " memory ran out: lower runtime.workers, or raise runtime.retries"
            ) from error
        self._retries -= 1
        ray.kill(self._actors[lost])  # its machine may only be temporarily unreachable
        self._require_cores(wait=_WAIT)
        self._actors[lost] = self._make()

    def _require_cores(self, *, wait: float) -> None:
        end = time.monotonic() + wait
        while (cores := int(ray.cluster_resources().get("CPU", 0))) < self._count:
            if time.monotonic() > end:
                raise UserError(
                    f"the Ray cluster has {cores} cores, runtime.workers is {self._count}: lower it, or add machines"
                )
            time.sleep(1)


def _found(reference: Any) -> Any:
    """Return an actor's result. Raises the UserError that it raised."""
    try:
        return ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(str(error.cause)) from error
        raise
