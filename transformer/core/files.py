"""Read and write the workflow's files: atomically, and byte-deterministic."""

import hashlib
import io
import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import IO, Any

from transformer.core.errors import UserError

_BLOCK = 1 << 20
_PART = ".part"
_PASSING = (
    *("__pycache__", ".ipynb_checkpoints", "py.typed", "*.swp", "*.swo", "*~", ".#*", ".~lock.*#", "~$*"),
    *(".DS_Store", "._*", "Thumbs.db", "desktop.ini", ".directory"),
)
"""Temporary files and folders of Python, editors, offices and desktops; .dvcignore has them too."""


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` and rename it to `path` only if the block ends without an error.

    The content is synced to disk before the rename, so a power failure leaves no partial file either. Raises UserError
    when the file cannot be written (no space, no permission); what was at `path` stays.
    """
    temporary = path.with_name(f".{path.name}.{_host()}.{os.getpid()}{_PART}")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path.parent)
            stream = io.BufferedWriter(_Target(temporary, path))
        with stream:
            yield stream
            stream.flush()
            with writing(path):
                os.fsync(stream.fileno())
        with writing(path):
            temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class _Target(io.FileIO):
    """The temporary file; distinguishes its own OSErrors from those of files that the block reads."""

    def __init__(self, temporary: Path, path: Path) -> None:
        super().__init__(temporary, "wb")
        self._path = path

    def write(self, content: Any) -> int:
        with writing(self._path):
            return super().write(content)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise UserError for an OSError in the block, which writes `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; free some disk space or fix the permissions"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise UserError for an OSError in the block, which reads `path`, a stage's file."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run `dvc repro` to make it") from error
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): fix its permissions, or make it again"
        ) from error


def _host() -> str:
    """Return the name of this machine or container, safe for file names."""
    return re.sub(r"[^\w-]", "-", platform.node())[:40] or "-"


def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files left by killed processes of this host."""
    for path in folder.glob(f".*.{_host()}.*{_PART}"):
        process = path.name.split(".")[-2]
        if process.isdigit() and not _alive(int(process)):
            path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def files_of(path: Path) -> Iterator[Path]:
    """Yield the file itself, or all files in a folder except temporary ones (`is_passing`)."""
    found = path.rglob("*") if path.is_dir() else (path,)
    return (file for file in found if not is_passing(file.relative_to(path)) and file.is_file())


def is_passing(path: Path) -> bool:
    """True for a temporary file of Python, an editor, an office program or a desktop."""
    return any(fnmatch(part, pattern) for part in path.parts for pattern in _PASSING)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's content, atomically. Raises UserError when the file is missing or cannot be read."""
    with reading(source), source.open("rb") as stream, atomic_write(target) as copy:
        shutil.copyfileobj(stream, copy)


def copy_folder(source: Path, target: Path) -> None:
    """Copy all files of a folder, each atomically."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy_file(path, target / path.relative_to(source))


def json_bytes(value: Any, *, indent: int | None = 2) -> bytes:
    """Encode as canonical UTF-8 JSON with sorted keys. Raises ValueError for NaN and infinity."""
    return (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=indent, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Write `value` as canonical JSON, atomically."""
    with atomic_write(path) as stream:
        stream.write(json_bytes(value))


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises UserError when it is missing, unreadable or not JSON."""
    with reading(path):
        content = path.read_bytes()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # the latter for lists in lists in lists
        raise UserError(f"{path} cannot be read as JSON ({error}): run `dvc repro` to make it again") from error


def write_rows(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write rows as JSON lines with sorted keys, atomically, in constant memory; return their number."""
    written = 0
    with atomic_write(path) as stream:
        for row in rows:
            stream.write(json_bytes(row, indent=None))
            written += 1
    return written


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Stream the rows of a JSON lines file. Raises UserError when it is missing or corrupt."""
    with reading(path), path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UserError(
                    f"{path}, line {number}: not JSON ({error}); run the stage that wrote it again"
                ) from error


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a TSV with a header, atomically. Floats in their shortest exact form; tabs and newlines become spaces."""
    with atomic_write(path) as stream:
        for row in chain([header], rows):
            stream.write(
                ("\t".join(" ".join(str(cell).split("\t")) for cell in row).replace("\n", " ") + "\n").encode()
            )


def read_table(path: Path) -> Iterator[dict[str, str]]:
    """Stream the rows of a TSV as dicts keyed by its header."""
    try:
        with reading(path), path.open(encoding="utf-8", newline="\n") as stream:
            header = next(stream).rstrip("\n").split("\t")
            for line in stream:
                yield dict(zip(header, line.rstrip("\n").split("\t"), strict=True))
    except (ValueError, StopIteration) as error:
        raise UserError(f"{path} is not a table: run `dvc repro` to make it again") from error


def table_rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Parse a TSV without quoting into dicts keyed by its header; a row with fewer cells lacks the last columns.

    csv.DictReader refuses cells of more than 131,072 characters.
    """
    rows = (line.rstrip("\r").split("\t") for line in lines if line)
    header = next(rows, [])
    for row in rows:
        yield dict(zip(header, row, strict=False))


def has_conflict(content: bytes) -> bool:
    """True if the content has git's conflict markers."""
    return re.search(rb"^(<<<<<<<|>>>>>>>) ", content, re.MULTILINE) is not None


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
