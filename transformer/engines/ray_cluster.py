"""Connection to Ray (written for Ray 2.60): to a cluster, or to a private one on this machine."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psutil
import ray
from ray._private import services
from ray.exceptions import RayError

from transformer.core.errors import UserError
from transformer.core.portable import PINS
from transformer.core.schema import Runtime

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
