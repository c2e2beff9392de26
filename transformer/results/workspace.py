"""Compares the workspace's files with the hashes in dvc.lock."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.code import changes, code_path, workspace_code
from transformer.core.errors import UserError
from transformer.core.files import files_of, read_json
from transformer.core.task import open_task, task_names
from transformer.results.dvc_inside import recorded_md5
from transformer.results.git import is_tracked
from transformer.results.lockfile import LOCK, parse_lock

if TYPE_CHECKING:
    from dvc.repo import Repo

    from transformer.results.chain import Chain


def content_md5(content: bytes) -> str:
    """The MD5 that DVC gives to a file with this content."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def folder_md5(files: Mapping[str, str]) -> str:
    """The MD5 that DVC gives to a folder. files: relative path to MD5."""
    listing = [{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())]
    return f"{content_md5(json.dumps(listing).encode())}.dir"


def hashes(repo: "Repo", paths: Iterable[str]) -> dict[str, str | None]:
    """The MD5 of files and folders, as DVC would record it; None for those that do not exist.

    DVC remembers the hashes of files that it has seen, so an unchanged file costs one `stat`.
    """
    places = {path: Path(repo.root_dir, path) for path in paths}
    return {path: recorded_md5(repo, place) if place.exists() else None for path, place in places.items()}


def changed_since(repo: "Repo") -> dict[str, list[str]]:
    """What has changed since a stage ran, by the stage's name, such as `train@TASK`: code, inputs and parameters.

    Inputs that are not there do not count: in a clone without `dvc pull` none is, and nothing has changed.
    """
    own = Path(repo.root_dir, "dvc.yaml").resolve()
    found = changed_code(Path(repo.root_dir))
    for address, entries in repo.status().items():  # of all stages: a second, where each target takes a fifth of one
        path, _, name = address.rpartition(":")
        changed = sorted(set(_changed(entries)))
        if changed and Path(path or "dvc.yaml").resolve() == own and not name.startswith("code@"):
            found[name] = changed + found.get(name, [])
    return found


def changed_code(root: Path) -> dict[str, list[str]]:
    """The code that has changed since the stage `code` ran, by the stage that it is of: DVC does not see that."""
    found = {}
    for task in task_names():
        for stage, now in workspace_code(root, open_task(task)).items():
            path = root / code_path(stage, task)
            if path.is_file() and (changed := changes(read_json(path), now)):
                found[f"{stage}@{task}"] = changed
    return found


def of_chain(chain: "Chain", by_stage: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The entries of its stages, in their order."""
    names = (f"{stage.name}@{chain.task}" for stage in chain.executed)
    return {name: by_stage[name] for name in names if name in by_stage}


def _changed(status: Iterable[Any]) -> Iterator[str]:
    """The changed dependencies and parameters in DVC's status of a stage; outputs are another matter."""
    for entry in status:
        if isinstance(entry, str):
            yield entry
            continue
        for path, state in entry.get("changed deps", {}).items():
            if state != "deleted":
                yield from state if isinstance(state, dict) else [path]


def require_outputs(root: Path, outs: Mapping[str, str]) -> None:
    """Refuse files that do not match dvc.lock, as after `git checkout` without `dvc checkout`.

    outs: outputs by path, with the MD5 in dvc.lock. Raises UserError, naming the first that differs.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        here = hashes(repo, outs)
    for path, md5 in outs.items():
        if here[path] != md5:
            raise UserError(not_as_locked(root, path, missing=here[path] is None))


def not_as_locked(root: Path, path: str, *, missing: bool = False) -> str:
    """The message for an output that is not the one in dvc.lock, with what to do."""
    what = "is missing" if missing else "is not what dvc.lock says"
    restore = f"git checkout -- {path}" if is_tracked(root, path) else "dvc checkout"
    return f"{path} {what}: run `{restore}` to get the result's own file, or `dvc repro` to make it again"


def folder_is_as_locked(root: Path, path: str) -> bool:
    """Whether a folder matches dvc.lock; also True if dvc.lock cannot be read or does not list it.

    Hashes the files itself: importing DVC takes longer than hashing a model.
    """
    try:
        entries = (parse_lock((root / LOCK).read_bytes()).get("stages") or {}).values()
    except (OSError, ValueError):
        return True
    locked = {out["path"]: out.get("md5") for entry in entries for out in entry.get("outs") or ()}
    return locked.get(path) in (None, md5_of_folder(root / path))


def md5_of_folder(folder: Path) -> str:
    """The MD5 that DVC would record for a folder, computed from its files."""
    return folder_md5({file.relative_to(folder).as_posix(): _file_md5(file) for file in files_of(folder)})


def _file_md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
