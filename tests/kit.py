"""Clean environments, copies of the working tree and changed parameters, for the tests and the benchmarks."""

import hashlib
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from transformer.commands.profiles import profile_params
from transformer.core.code import Tree, code_at_start, code_path, fingerprint
from transformer.core.files import atomic_write, json_bytes
from transformer.core.params import parse
from transformer.core.task import STAGES as STAGES
from transformer.core.task import open_task, task_names

ROOT = Path(__file__).parents[1]
TASKS = task_names()
_SETTINGS = ("DVC_", "MLFLOW_", "GIT_", "ONEDNN_")


def clean_environment(**more: str) -> dict[str, str]:
    """The variables of a user's shell with this environment's commands on PATH and no configuration, plus `more`."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS) and name != "PYTHONPATH"
    }
    identity = {
        f"GIT_{role}_{what}": "test@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return inherited | identity | own | more


def fresh_profile(name: str) -> dict[str, Any]:
    """The values of a profile, to be changed at will. YAML is read in pure Python: 0.2 s each time."""
    values: dict[str, Any] = pickle.loads(_pickled(name))
    return values


@cache
def _pickled(name: str) -> bytes:
    return pickle.dumps(profile_values(ROOT, name))


def profile_values(root: Path, name: str) -> Any:
    """The values of a profile in a folder."""
    return parse(profile_params(root, name))


def copy_working_tree(root: Path, params: str) -> None:
    """A repository at `root` with these parameters and this checkout's files, tracked or new, without stage outputs."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        written = name == "dvc.lock" or (name.startswith("reports/") and not name.endswith(".gitignore"))
        if name and (ROOT / name).is_file() and not written:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    for package in ("transformer", "stages"):  # compiling them again takes 5 s
        for compiled in (ROOT / package).rglob("__pycache__/*.pyc"):
            (root / compiled.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(compiled, root / compiled.relative_to(ROOT))
    (root / "params.yaml").write_text(params, encoding="utf-8")
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)


def set_leaves(path: Path, changes: Mapping[str, Any]) -> None:
    """Set dotted leaves of a params.yaml."""
    yaml = YAML()
    content: Any = yaml.load(path)
    for name, value in changes.items():
        *sections, leaf = name.split(".")
        section = content
        for part in sections:
            section = section[part]
        section[leaf] = value
    with atomic_write(path) as stream:
        yaml.dump(content, stream)


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until(condition: Callable[[], object], process: subprocess.Popen[Any] | None = None, seconds: float = 60) -> None:
    """Wait until a condition holds; fails the test if time runs out, or if the process ends before."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.02)


def start_server(
    command: Sequence[str], health: str, cwd: Path, env: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a server in its own process group, and wait until it answers at `health`."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(health, timeout=1):
            return process
        time.sleep(0.2)
    stop_server(process)
    raise AssertionError(log.read_text())


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to end, then kill what is left of its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait(timeout=60)


def git(root: Path, *arguments: str) -> str:
    """The output of a git command as a user of its own."""
    own = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return subprocess.run(["git", "-C", root, *own, *arguments], check=True, capture_output=True, text=True).stdout


def read_versions(path: Path) -> dict[str, str]:
    """The versions in a lock file, by the package's name; Python's stands in a comment."""
    return dict(re.findall(r"^(?:# )?([\w.-]+)==(\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def stage_files(stage: str, task: str) -> set[str]:
    """The files of code whose meaning a stage depends on."""
    found = fingerprint(code_at_start(), stage, open_task(task))
    return {*found["modules"], *found["files"]}


def write_code_of(root: Path, stage: str, task: str) -> dict[str, str]:
    """Write a fingerprint of all modules in a folder as that of a stage's code; returns its MD5 by path."""
    tree, path = Tree(root), code_path(stage, task)
    modules = {name: tree.module(name).meaning for name in tree.names}
    content = json_bytes({"modules": modules, "files": {}, "task": {}, "libraries": {}})
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)
    return {path: hashlib.md5(content, usedforsecurity=False).hexdigest()}
