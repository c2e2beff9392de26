"""Access to the content of a chain's outputs."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dvc.repo import Repo

from transformer.core.files import files_of
from transformer.results import git
from transformer.results.chain import Chain
from transformer.results.dvc_inside import cached_object
from transformer.results.workspace import content_md5, folder_md5


class MissingContentError(Exception):
    """An output of a chain is not in the workspace, DVC's cache or git."""


class Content:
    """Finds the outputs of a chain by hash: in DVC's cache, the workspace or the chain's commit."""

    def __init__(self, repo: Repo, chain: Chain, commit: str | None = None, fresh: str | None = None) -> None:
        """repo: that of the workspace, which may have another result; commit: one with this chain, or None.

        fresh: a folder that the chain's running stage has written to the workspace, whose hash is not known yet.
        """
        self._repo, self.directory, self._chain = repo, Path(repo.root_dir), chain
        self._commit, self._fresh = commit, fresh

    def place(self, path: str, target: Path) -> None:
        """Link or copy the chain's file or folder `path` to `target`. Raises MissingContentError."""
        files = {file: md5 for file, md5 in self._files(path) if file == path or file.startswith(f"{path}/")}
        if not files:
            raise MissingContentError(path)
        for file, md5 in files.items():
            self._place_file(file, md5, target / Path(file).relative_to(path))

    def _files(self, path: str) -> Iterator[tuple[str, str]]:
        """The files, with their MD5, of the output that is `path` or contains it."""
        if path == self._fresh:
            yield from ((f"{path}/{name}", md5) for name, md5 in self._in_workspace(path).items())
        for out, md5 in self._chain.outs.items():
            if path != out and not path.startswith(f"{out}/"):
                continue
            if not md5.endswith(".dir"):
                yield out, md5
            else:
                yield from ((f"{out}/{name}", file_md5) for name, file_md5 in self._listing(out, md5).items())

    def _listing(self, out: str, md5: str) -> dict[str, str]:
        """The files of a folder, relative to it, with their MD5; empty if no place has that version of the folder."""
        if (cached := self._cached(md5)).is_file():
            return {entry["relpath"]: entry["md5"] for entry in json.loads(cached.read_bytes())}
        for files in (self._in_workspace(out), self._in_git(out)):
            if folder_md5(files) == md5:
                return files
        return {}

    def _in_workspace(self, out: str) -> dict[str, str]:
        folder = self.directory / out
        return {file.relative_to(folder).as_posix(): content_md5(file.read_bytes()) for file in files_of(folder)}

    def _in_git(self, out: str) -> dict[str, str]:
        if self._commit is None:
            return {}
        names = git.files(self.directory, self._commit, out)
        return {name: content_md5(git.blob(self.directory, self._commit, f"{out}/{name}")) for name in names}

    def _place_file(self, path: str, md5: str, target: Path) -> None:
        cached, here = self._cached(md5), self.directory / path
        if cached.is_file():
            _link(cached, target)
        elif here.is_file() and content_md5(here.read_bytes()) == md5:
            _link(here, target)
        elif self._commit and content_md5(content := git.blob(self.directory, self._commit, path)) == md5:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        else:
            raise MissingContentError(path)

    def _cached(self, md5: str) -> Path:
        return cached_object(self._repo, md5)


@contextmanager
def gathered(content: Content, paths: list[str], near: Path) -> Iterator[Path]:
    """A temporary folder inside `near` with these outputs at their own paths. Raises MissingContentError."""
    near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tracking-", dir=near) as folder:
        for path in paths:
            content.place(path, Path(folder, path))
        yield Path(folder)


def file_content(path: Path) -> bytes | None:
    """A file's content; None if there is no file."""
    return path.read_bytes() if path.is_file() else None


def file_md5(path: Path) -> str | None:
    """The MD5 of a file's content; None if there is no file."""
    content = file_content(path)
    return None if content is None else content_md5(content)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
