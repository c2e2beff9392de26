"""The default params.yaml in git, and the state of the workspace's: committed, a profile just written, or edited."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.workflow import git

PARAMS = Path("params.yaml")
DEFAULT_HEAD = "# The default"
"""Prefix of the default's first line; a profile's differs."""
_PLACED = Path(".dvc", "tmp", "placed-profile")  # checksum of the last profile written, to tell it from an edit


def committed_default(root: Path) -> str:
    """Return the newest committed params.yaml whose first line marks it as the default. Raises UserError.

    One from a merged branch counts if it is a later state of this branch's own: an upstream's new default is there
    only, where a profile was in place here.
    """
    own = next(_defaults(root, "--first-parent"), None)
    for commit, text in _defaults(root, "--full-history"):
        if own is None or git.git(root, "merge-base", own[0], commit).decode().strip() == own[0]:
            return text
    raise UserError(
        f"no commit here has the default params.yaml (its first line starts with `{DEFAULT_HEAD}`): fetch the whole"
        " history with `git fetch --unshallow`, or commit one"
    )


def _defaults(root: Path, history: str) -> Iterator[tuple[str, str]]:
    """Yield the commits of a default params.yaml, newest first; history: an option of rev-list."""
    for commit in git.git(root, "rev-list", history, "HEAD", "--", str(PARAMS)).decode().split():
        text = git.blob(root, commit, str(PARAMS)).decode("utf-8-sig", errors="replace")
        if text.startswith(DEFAULT_HEAD):
            yield commit, text


def is_committed(root: Path, current: bytes) -> bool:
    """True if the checked-out commit has this params.yaml."""
    return git.blob(root, "HEAD", str(PARAMS)) == current


def is_placed(root: Path, current: bytes) -> bool:
    """True if `note_placed` noted this params.yaml."""
    marker = root / _PLACED
    return marker.is_file() and marker.read_bytes() == _checksum(current).encode()


def note_placed(root: Path, written: bytes | None) -> None:
    """Note the params.yaml that was written; None: it has edits, which the next profile must not overwrite."""
    if written is None:
        (root / _PLACED).unlink(missing_ok=True)
        return
    with atomic_write(root / _PLACED) as stream:
        stream.write(_checksum(written).encode())


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
