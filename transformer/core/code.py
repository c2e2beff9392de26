"""Hashes of the project's code as it was when a stage started."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from transformer.core.files import sha256

CODE = ("transformer", "stages")
"""The folders with the project's code."""
ROOT = Path(__file__).parents[2]
_PASSING = ("__pycache__", ".ipynb_checkpoints", ".DS_Store", "*.swp", "*.swo", "*~", ".#*")
"""Files and folders that Python, editors and desktops leave; .dvcignore has them too."""


@cache
def code_at_start() -> Mapping[str, str]:
    """The SHA-256 of every file in the code folders, by path, as of the first call.

    `core/start.py` calls it before other modules are loaded, so that the code that runs is the code that was hashed.
    """
    return {name: digest for folder in CODE for name, digest in code_now(folder).items()}


def code_at_start_of(paths: Iterable[str]) -> dict[str, str]:
    """The same for these files and folders."""
    wanted = list(paths)
    return {name: sha for name, sha in code_at_start().items() if any(within(name, path) for path in wanted)}


def code_digest() -> str:
    """One SHA-256 for `code_at_start`, to compare the code of several processes."""
    lines = "".join(f"{name} {sha}\n" for name, sha in sorted(code_at_start().items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def within(path: str, folder: str) -> bool:
    """Whether a path is this folder, or lies in it."""
    return path == folder or path.startswith(f"{folder}/")


def code_now(name: str) -> dict[str, str]:
    """The same for one file or folder, as of now; empty if it does not exist."""
    return {path.relative_to(ROOT).as_posix(): sha256(path) for path in files_of(ROOT / name)}


def files_of(path: Path) -> Iterator[Path]:
    """The file itself, or all files in a folder except those that Python, editors and desktops leave."""
    found = path.rglob("*") if path.is_dir() else (path,)
    return (file for file in found if file.is_file() and not _passing(file.relative_to(path)))


def _passing(path: Path) -> bool:
    return any(fnmatch(part, pattern) for part in path.parts for pattern in _PASSING)
