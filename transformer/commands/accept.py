"""`transformer accept`: record a code change that cannot affect results, without a run.

It renews the entries of code in dvc.lock, and nothing else: no parameter, no input, no output. DVC's run cache gets no
entry: it records what was run, and a wrong entry would come back even after `git checkout dvc.lock`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage import PipelineStage
from dvc.stage.serialize import to_lockfile
from dvc.utils.serialize import dumps_yaml, parse_yaml_for_update

from transformer.core.code import code_path, write_code
from transformer.core.errors import UserError
from transformer.core.files import atomic_write, has_conflict
from transformer.core.task import open_task, task_names
from transformer.workflow.pipeline import LOCK, RESOLVE


def accept(root: Path, address: str | None = None) -> list[str]:
    """Accept the code of one stage (`train@translation`), or of every stage that has a result in dvc.lock.

    root: the current folder. Returns the stages whose code was another. All or nothing: raises UserError, one line that
    says why, when anything but code has changed as well.
    """
    for task in task_names():
        write_code(open_task(task))
    try:
        with Repo(str(root)) as repo, repo.lock:
            text = _lock_text(root / LOCK)
            content = parse_yaml_for_update(text, LOCK)
            accepted = []
            for stage in _stages(repo, root, content.get("stages") or {}, address):
                code = [dep for dep in stage.deps if dep.def_path == code_path(*stage.name.split("@"))]
                if code and code[0].changed_checksum():
                    _require_the_rest_unchanged(stage, code[0])
                    code[0].save()
                    accepted.append(stage.name)
                elif stage.name.startswith("code@"):
                    stage.outs[0].save()
                content["stages"].update(to_lockfile(stage))
    except DvcException as error:
        raise UserError(f"DVC says: {' '.join(str(error).split())}") from error
    if dumps_yaml(content) != text:
        with atomic_write(root / LOCK) as stream:
            stream.write(dumps_yaml(content).encode())
    return accepted


def _lock_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path.name} is missing, so there is no result to accept for: run `dvc repro`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} cannot be read ({error})") from error
    if has_conflict(text.encode()):
        raise UserError(f"{path.name} has conflict markers: {RESOLVE}")
    return text


def _stages(repo: Repo, root: Path, locked: Any, address: str | None) -> Iterator[PipelineStage]:
    """Yield the stages of the project's own dvc.yaml that have a result in dvc.lock."""
    own = (root / "dvc.yaml").resolve()
    found = {stage.name: stage for stage in repo.index.stages if Path(stage.path).resolve() == own}
    if address is not None and address not in found:
        raise UserError(f"there is no stage {address}: choose one of {', '.join(found)}")
    if address is not None and address not in locked:
        raise UserError(f"{address} never ran, so there is no result to accept for: run `dvc repro {address}`")
    for name, stage in found.items():
        if name in locked and (address in (None, name) or name.startswith("code@")) and not stage.frozen:
            yield stage


def _require_the_rest_unchanged(stage: PipelineStage, code: Any) -> None:
    """Raise UserError if the command, a parameter, an input or an output changed or is missing."""
    changed = ["its command"] * stage.cmd_changed
    for dep in stage.deps:
        states = () if dep is code else dep.workspace_status().values()
        changed += [name for state in states for name in (state if isinstance(state, dict) else [str(dep)])]
    changed += [str(out) for out in stage.outs if out.workspace_status()]
    missing = [str(each) for each in (*stage.deps, *stage.outs) if str(each) in changed and not each.exists]
    if missing:
        raise UserError(
            f"{stage.name}: {', '.join(missing)} is not here, so nothing can be accepted: `dvc checkout` or `dvc pull`"
            f" brings it, and `dvc repro {stage.name}` computes it"
        )
    if changed:
        raise UserError(
            f"{stage.name}: {', '.join(changed)} changed as well, and only code can be accepted: run `dvc repro"
            f" {stage.name}`"
        )
