"""Recompute a commit's results in a separate clone, and compare them with the commit's dvc.lock."""

import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from transformer.core.code import ran_path
from transformer.core.errors import UserError
from transformer.core.params import leaves
from transformer.workflow.git import blob, git, prefix
from transformer.workflow.pipeline import LOCK, Stage, stages_in_lock
from transformer.workflow.results import commit_of

_COMMAND = (sys.executable, "-P", "-m", "dvc", "repro", "--force", "--no-run-cache")
_SHOWN = 3


def verify(root: Path, name: str, task: str | None, echo: Callable[[str], None]) -> None:
    """Recompute a commit's stages, or those that one task's result needs, and echo differences, a line per stage.

    They run in a temporary clone that has no dvc.lock, no outputs and an empty cache, so that none can be skipped.
    Raises UserError if a stage was not computed or anything differs, and if a clone lacks an input.
    """
    commit = commit_of(root, name)
    was = stages_in_lock(blob(root, commit, LOCK), name)
    wanted = [stage for stage in was if task is None or stage.endswith(f"@{task}")]
    if not wanted:
        raise UserError(f"{name} has no result{f' of {task}' if task else ''} in {LOCK}: run `dvc repro`, and commit")
    with _clone(root, commit) as folder:
        _require_inputs(folder, was, wanted)
        note = _kind_of_machine(_without_results(folder, was)["hardware"], name)
        if note:
            echo(f"note: {note}")
        failed = _run((*_COMMAND, *([f"report@{task}"] if task else [])), folder)
        now = stages_in_lock((folder / LOCK).read_bytes() if (folder / LOCK).is_file() else b"", name)
        changed = git(folder, "diff", "--name-only", "--relative", "-z", "HEAD")
        changed += git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    stages = list(dict.fromkeys((*now, *wanted)))
    what = {stage: _difference(was.get(stage), now.get(stage), changed.decode().split("\0")) for stage in stages}
    different = [stage for stage in stages if what[stage]]
    for stage in different:
        echo(f"{stage}: {what[stage]}")
    if failed or different:
        why = "`dvc repro` failed: " if failed else ""
        raise UserError(f"{why}{len(different)} of {len(stages)} stages are not as at {name}{note and f'; {note}'}")
    echo(f"{len(stages)} stages computed: every output is that of {name}")


@contextmanager
def _clone(root: Path, commit: str) -> Iterator[Path]:
    """Clone the project next to the clones of `dvc exp run --temp`; removed when this process stops."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    (root / ".dvc/tmp").mkdir(exist_ok=True)
    top = git(root, "rev-parse", "--show-toplevel").decode().removesuffix("\n")
    try:
        with TemporaryDirectory(prefix="verify-", dir=root / ".dvc/tmp") as folder:
            for command in (("clone", "-q", "--shared", "--no-checkout", top, folder), ("checkout", "-q", commit)):
                done = subprocess.run(("git", "-C", folder, *command), capture_output=True, text=True, check=False)
                if done.returncode:
                    raise UserError(f"git cannot clone {root} at {commit}: {' '.join(done.stderr.split())}")
            yield Path(folder, prefix(root))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _require_inputs(folder: Path, was: Mapping[str, Stage], wanted: list[str]) -> None:
    """Raise UserError if a stage reads a file that is neither in git nor written by another stage."""
    made = {path for stage in was.values() for path in stage.outs} | {ran_path(*name.split("@")) for name in was}
    read = sorted({path for stage in wanted for path in was[stage].deps} - made)
    if missing := [path for path in read if not (folder / path).exists()]:
        raise UserError(
            f"a clone lacks {', '.join(missing)}: name it in params.yaml by its absolute path, or verify another task"
            " (--task)"
        )


def _without_results(folder: Path, was: Mapping[str, Stage]) -> Any:
    """Remove git's part of the results, give DVC an empty cache, and turn tracking off. Return the parameters."""
    (folder / LOCK).unlink()
    for out in ((folder / path).resolve() for stage in was.values() for path in stage.outs):
        if out.is_relative_to(folder.resolve()):
            shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    (folder / ".dvc/config.local").write_text("[cache]\n    dir = cache\n")
    yaml = YAML()
    content: Any = yaml.load(folder / "params.yaml")
    content["runtime"]["tracking"] = False
    yaml.dump(content, folder / "params.yaml")
    return content


def _kind_of_machine(hardware: Mapping[str, Any], name: str) -> str:
    """Explain why different bytes may be legitimate on this machine; empty if they indicate an error."""
    import torch

    if (hardware["device"], hardware["precision"]) != ("cpu", "fp32"):
        why = f"the bytes of {hardware['precision']} on {hardware['device']} belong to a kind of machine"
    elif not hardware["portable"]:
        why = "hardware.portable is false, so the bytes belong to a kind of machine"
    elif platform.machine() not in ("x86_64", "AMD64") or not torch.cpu.get_capabilities().get("avx2"):
        why = "only x86-64 processors with AVX2 compute the same bytes, and this is not one"
    else:
        return ""
    return f"{why}; after `dvc repro`, `transformer compare {name}` says whether scores differ by more than chance"


def _run(command: tuple[str, ...], folder: Path) -> bool:
    """Run DVC with this environment's Python, terminating its processes with this one. Return True if it failed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    own = {"PATH": path, "DVC_SITE_CACHE_DIR": str(folder / ".dvc/tmp/site")}
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **own}, start_new_session=True)
    try:
        return process.wait() != 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _difference(was: Stage | None, now: Stage | None, changed: list[str]) -> str:
    """Describe how a stage differs from the commit's dvc.lock or its files (changed); empty if it does not."""
    if was is None or now is None:
        return "not computed" if now is None else f"not in {LOCK}"
    outs = [path for path in now.outs if any(file == path or file.startswith(f"{path}/") for file in changed)]
    outs = sorted({*outs, *_unequal(was.outs, now.outs)})
    given = [*_unequal(was.deps, now.deps), *_unequal(leaves(was.params), leaves(now.params))]
    more = f" and {len(given) - _SHOWN} more" if len(given) > _SHOWN else ""
    parts = [f"wrote other {', '.join(outs)}"] * bool(outs)
    parts += [f"read other {', '.join(given[:_SHOWN])}{more}"] * bool(given)
    return "; ".join(parts)


def _unequal(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted({*one, *two}) if (name in one, one.get(name)) != (name in two, two.get(name))]
