"""`transformer accept`: records a change of code or library versions that cannot affect results, without a run.

It updates the hashes of the changed files in dvc.lock and nothing else: no parameter, no input, no output. DVC's run
cache gets no entry: it records what was run, and a wrong entry would come back even after `git checkout dvc.lock`.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dvc.dependency import ParamsDependency
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage import PipelineStage
from dvc.stage.serialize import to_lockfile
from dvc.utils.serialize import dumps_yaml, parse_yaml_for_update

from transformer.core.code import CODE
from transformer.core.errors import UserError
from transformer.core.files import atomic_write, has_conflict
from transformer.core.versions import FOLDER
from transformer.results.lockfile import LOCK, RESOLVE

_ACCEPTABLE = (*CODE, FOLDER)


def accept(root: Path, address: str | None = None) -> dict[str, list[str]]:
    """Accept the changes of one stage (`train@translation`), or of every stage that has a result in dvc.lock.

    Returns the accepted files by stage. All or nothing: raises UserError, one line that says why, when a stage
    differs in anything but code and versions, or an output does not match dvc.lock.
    """
    _lock_text(root / LOCK)  # a missing or broken file is said first
    try:
        with Repo(str(root)) as repo, repo.lock:
            text = _lock_text(root / LOCK)  # as it is now: a stage that was running may have ended meanwhile
            wrote = {out.fs_path: out for stage in repo.index.stages for out in stage.outs}
            accepted = {}
            for stage in _stages(repo, root, address):
                files = _changed(stage)
                if files or address:
                    _require_the_rest_unchanged(stage, wrote)
                if files:
                    accepted[stage] = files
            if accepted:
                _write(root / LOCK, text, accepted)
    except DvcException as error:
        raise UserError(f"DVC says: {' '.join(str(error).split())}") from error
    return {stage.name: files for stage, files in accepted.items()}


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


def _stages(repo: Repo, root: Path, address: str | None) -> Iterator[PipelineStage]:
    """The stages with a result in dvc.lock. Like DVC, skips frozen stages; naming one is an error.

    The repository may have others, of the same names too: in `.dvc` files, and in a copy of the project in a folder.
    """
    own = (root / "dvc.yaml").resolve()
    pipelines = (stage for stage in repo.index.stages if isinstance(stage, PipelineStage))
    known = {stage.name: stage for stage in pipelines if Path(stage.path).resolve() == own}
    if address is not None and address not in known:
        raise UserError(f"there is no stage {address}: choose one of {', '.join(known)}")
    lock: dict[str, Any] = next((stage.dvcfile.lockfile_contents for stage in known.values()), {})
    for name, stage in known.items():
        if address not in (None, name):
            continue
        locked = name in (lock.get("stages") or {})
        if address and not locked:
            raise UserError(f"{name} never ran, so there is no result to accept for: run `dvc repro {name}`")
        if address and stage.frozen:
            raise UserError(f"{name} is frozen, and DVC does not look at its dependencies: `dvc unfreeze {name}` first")
        if locked and not stage.frozen:
            yield stage


def _changed(stage: PipelineStage) -> list[str]:
    """The files of code and versions that differ from dvc.lock. Raises UserError when one is missing."""
    states = {dep.def_path: dep.workspace_status().get(str(dep)) for dep in stage.deps if _is_acceptable(dep)}
    for path, state in states.items():
        if state == "deleted":
            raise UserError(f"{stage.name}: {path}, a dependency in dvc.yaml, is missing: restore it first")
    return sorted(path for path, state in states.items() if state)


def _is_acceptable(dependency: Any) -> bool:
    is_file = not isinstance(dependency, ParamsDependency)
    return is_file and dependency.def_path.split("/")[0] in _ACCEPTABLE


def _require_the_rest_unchanged(stage: PipelineStage, wrote: Mapping[str, Any]) -> None:
    """wrote: the outputs of all stages, by path."""
    _require_only_code_changed(stage, wrote)
    for out in stage.outs:
        state = out.workspace_status().get(str(out))
        if state == "deleted" and out.use_cache and not out.changed_cache():
            continue
        if state == "deleted":
            raise _missing(stage, str(out))
        if state:
            raise UserError(f"{stage.name}: {out} is not what {LOCK} says: run `dvc checkout` or `dvc repro`")


def _require_only_code_changed(stage: PipelineStage, wrote: Mapping[str, Any]) -> None:
    """Raise UserError if the command, a parameter or an input changed."""
    if stage.cmd_changed:
        raise _refused(stage, ["its command"])
    for dep in stage.deps:
        if isinstance(dep, ParamsDependency):
            states = dep.workspace_status().get(str(dep), {})
            if states:
                raise _refused(stage, _parameters(dep, states))
        elif not _is_acceptable(dep):
            state = dep.workspace_status().get(str(dep))
            producer = wrote.get(dep.fs_path)
            cached = producer is not None and producer.hash_info == dep.hash_info and not producer.changed_cache()
            if state == "deleted" and not cached:
                raise _missing(stage, dep.def_path)
            if state and state != "deleted":
                raise _refused(stage, [dep.def_path])


def _parameters(dependency: ParamsDependency, states: Any) -> list[str]:
    return [*states] if isinstance(states, Mapping) else [dependency.def_path]


def _missing(stage: PipelineStage, path: str) -> UserError:
    return UserError(f"{stage.name}: {path} is not here: get it with `dvc checkout` or `dvc pull` first")


def _refused(stage: PipelineStage, changed: Iterable[str]) -> UserError:
    return UserError(
        f"{stage.name}: {', '.join(changed)} changed as well, and only code and versions can be accepted:"
        f" run `dvc repro {stage.name}`"
    )


def _write(path: Path, text: str, accepted: Mapping[PipelineStage, list[str]]) -> None:
    """Write dvc.lock in DVC's format, but atomically."""
    content = parse_yaml_for_update(text, path.name)
    for stage, files in accepted.items():
        for dep in stage.deps:
            if _is_acceptable(dep) and dep.def_path in files:
                dep.save()
        content["stages"].update(to_lockfile(stage))
    with atomic_write(path) as stream:
        stream.write(dumps_yaml(content).encode())
