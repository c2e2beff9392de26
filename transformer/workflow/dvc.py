"""DVC internals beyond its commands: hashes, cache, remotes, status. Written for DVC 3.67.

`commands/accept.py` alone also asks dependencies for their state. A test pins the version
(tests/project/test_inside.py), so that an upgrade starts with a review of this file.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError
from transformer.core.files import files_of
from transformer.workflow.git import is_tracked

if TYPE_CHECKING:
    from dvc.api import DVCFileSystem
    from dvc.repo import Repo

DVC = "3.67"


def content_md5(content: bytes) -> str:
    """Return DVC's MD5 of a file with this content."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def md5_of_folder(folder: Path) -> str:
    """Compute DVC's MD5 of a folder from its files: importing DVC takes longer than hashing a model."""
    files = {file.relative_to(folder).as_posix(): file for file in files_of(folder)}
    listing = [{"md5": _file_md5(file), "relpath": name} for name, file in sorted(files.items())]
    return f"{content_md5(json.dumps(listing).encode())}.dir"


def _file_md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def cached(root: Path, md5: str) -> bytes | None:
    """Return the file with this hash from DVC's cache; None if missing."""
    from dvc.exceptions import DvcException

    try:
        return Path(_repo(root.resolve()).cache.local.oid_to_path(md5)).read_bytes()
    except (DvcException, OSError):
        return None


@lru_cache(maxsize=1)
def _repo(root: Path) -> "Repo":
    """Open DVC's repository, once for all files: each time takes 40 ms."""
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        return repo


@lru_cache(maxsize=4)
def file_system(root: Path, commit: str | None) -> "DVCFileSystem":
    """Open the files of a commit (None: the workspace), from git, DVC's cache and its remote; paths from `root`."""
    from dvc.api import DVCFileSystem

    return DVCFileSystem(str(root), rev=commit)


def read_at(root: Path, commit: str, path: str) -> bytes | None:
    """Read a file of a commit from git, DVC's cache or its remote; None if none has it."""
    try:
        content: bytes = file_system(root, commit).read_bytes(path)
    except Exception:  # the clients of S3 and other remotes have errors of their own
        return None
    return content


def require_outputs(root: Path, outs: Mapping[str, str]) -> None:
    """Raise UserError for files that do not match dvc.lock, as after `git checkout` without `dvc checkout`.

    outs: path to MD5 in dvc.lock. Raises UserError, naming the first that differs.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        for path, md5 in outs.items():
            exists = (root / path).exists()
            if not exists or _recorded_md5(repo, root / path) != md5:
                raise UserError(not_as_locked(root, path, missing=not exists))


def _recorded_md5(repo: "Repo", place: Path) -> str | None:
    """Return the MD5 that DVC would record for a file or folder; hashes of unchanged files come from its database."""
    from dvc_data.hashfile.build import build

    _, _, content = build(repo.cache.local, str(place), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
    md5: str | None = content.hash_info.value
    return md5


def not_as_locked(root: Path, path: str, *, missing: bool = False) -> str:
    """Return the message for an output that differs from dvc.lock, with what to do."""
    what = "is missing" if missing else "is not what dvc.lock says"
    restore = f"git checkout -- {path}" if is_tracked(root, path) else "dvc checkout"
    return f"{path} {what}: run `{restore}` to get the result's own file, or `dvc repro` to make it again"


def changed_since(root: Path, *, outputs: bool) -> dict[str, list[str]]:
    """Return the inputs and parameters changed since a stage ran, by the stage's name, such as `train@TASK`.

    outputs: whether to name changed outputs and missing inputs, too. In a clone without `dvc pull` all are missing.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        status = repo.status()
    own, found = (root / "dvc.yaml").resolve(), {}
    for address, entries in status.items():
        path, _, name = address.rpartition(":")
        changed = sorted({*_changed(entries, outputs)})
        if changed and Path(path or "dvc.yaml").resolve() == own and not name.startswith("code@"):
            found[name] = changed
    return found


def _changed(entries: Iterable[Any], outputs: bool) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
            continue
        for kind in ("changed deps", *(["changed outs"] if outputs else ())):
            for path, state in entry.get(kind, {}).items():
                if outputs or state != "deleted":
                    yield from state if isinstance(state, dict) else [path]
