"""Read results from git: the dvc.lock of every commit and experiment."""

import io
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.core.errors import UserError

_FATAL = 128
_LOCK = "dvc.lock"
_NO_REPOSITORY = "not a git repository (or any"
_EXPERIMENTS = "refs/exps/??/*/*"


@dataclass(frozen=True)
class Snapshot:
    """A committed dvc.lock."""

    commit: str
    time: int
    """Commit time in seconds."""
    baseline: str | None
    """Commit that it is based on."""
    experiment: str | None
    """Name of the experiment if the commit is a DVC experiment."""
    lock: bytes


def git(root: Path, *arguments: str) -> bytes:
    """Return the output of a git command; empty if git fails, as in a repository without commits, or outside of one.

    Raises UserError with git's own words if git refuses to read the repository, such as another user's.
    """
    return _run(root, arguments)


def _run(root: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    done = subprocess.run(("git", "-C", str(root), *arguments), input=given, capture_output=True, check=False)
    if done.returncode == _FATAL:
        _require_readable(root)
    return done.stdout


def _require_readable(root: Path) -> None:
    command = ("git", "-C", str(root), "rev-parse", "--git-dir")
    asked = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    said = " ".join(asked.stderr.decode(errors="replace").split())
    if asked.returncode and _NO_REPOSITORY not in said:
        raise UserError(f"git cannot read the repository of {root.absolute()}: {said}")


def head(root: Path) -> str | None:
    """Return the checked-out commit."""
    return git(root, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip() or None


def is_shallow(root: Path) -> bool:
    """True if the clone has only a part of the history."""
    return git(root, "rev-parse", "--is-shallow-repository").strip() == b"true"


def prefix(root: Path) -> str:
    """Return the folder of `root` in its git repository, such as `deep/project/`; empty for the repository's top."""
    return git(root, "rev-parse", "--show-prefix").decode().removesuffix("\n")


def blob(root: Path, commit: str, path: str) -> bytes:
    """Return a file's content at a commit; empty if it does not exist."""
    return git(root, "cat-file", "blob", f"{commit}:./{path}")  # `./`: the project may be a subfolder of the repository


def blobs(root: Path, commit: str, paths: Sequence[str]) -> list[bytes | None]:
    """Return the content of several files at a commit; None for missing ones."""
    names = "".join(f"{commit}:./{path}\n" for path in paths).encode()
    stream = io.BytesIO(_run(root, ("cat-file", "--batch"), names))
    return [_next_blob(stream) for _ in paths]


def _next_blob(stream: io.BytesIO) -> bytes | None:
    header = stream.readline().split()  # `ID blob SIZE`, or `NAME missing`
    if len(header) != 3 or header[1] != b"blob":
        return None
    content = stream.read(int(header[2]))
    stream.read(1)
    return content


def files(root: Path, commit: str, folder: str) -> list[str]:
    """List the files of a folder at a commit, relative to the folder."""
    names = git(root, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"{folder}/").decode().split("\0")
    return [name.removeprefix(f"{folder}/") for name in names if name]


def is_tracked(root: Path, path: str) -> bool:
    """True if the files at `path` are tracked by git rather than DVC."""
    return bool(git(root, "ls-files", "--", path))


def experiments(root: Path) -> dict[str, tuple[str, str]]:
    """Return DVC's experiments: commit to (name, baseline commit)."""
    lines = git(root, "for-each-ref", "--format=%(objectname) %(refname)", _EXPERIMENTS).decode().splitlines()
    found = {}
    for line in lines:
        commit, _, ref = line.partition(" ")
        _, _, first, rest, name = ref.split("/", 4)
        found[commit] = (name, first + rest)
    return found


def snapshots(root: Path) -> Iterator[Snapshot]:
    """Yield every distinct dvc.lock of all commits and experiments, oldest first, each with its oldest commit."""
    named = experiments(root)
    known: set[bytes] = set()
    history = ("log", "--exclude=refs/exps/*", "--exclude=refs/stash", "--all", *named)
    lines = git(root, *history, "--full-history", "-m", "--format=%ct %H %P", "--", _LOCK).decode().split("\n")
    oldest_first = dict.fromkeys(line for line in reversed(lines) if line[:1].isdigit())  # also within the same second
    commits = sorted(oldest_first, key=lambda line: int(line.split()[0]))
    for time, commit, *parents in map(str.split, commits):
        lock = blob(root, commit, _LOCK)
        if not lock or lock in known:
            continue
        known.add(lock)
        name, baseline = named.get(commit, (None, parents[0] if parents else None))
        yield Snapshot(commit, int(time), baseline, name, lock)
