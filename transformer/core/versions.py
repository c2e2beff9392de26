"""Versions of the libraries that can change a byte of a stage's outputs: `versions/FAMILY/STAGE.txt`.

Each file is a dependency of its stage in dvc.yaml. `python -m transformer.core.versions` updates the versions in these
files from requirements.lock; a test checks that their names match what the stage imports.
"""

import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.files import atomic_write

FOLDER = "versions"
LOCK = Path("requirements.lock")
_PYTHON = "python"
"""Python's minor version; in the lock file it is a comment: `# python==3.11`."""


def versions_file(stage: str, family: str) -> Path:
    """The file with the versions for a family's stage."""
    return Path(FOLDER, family, f"{stage}.txt")


def other_versions(stage: str, family: str) -> list[str]:
    """In words, the versions of this process that differ from the stage's file; empty without a file."""
    path = versions_file(stage, family)
    named = read_versions(path) if path.is_file() else {}
    runs = {name: _running(name) for name in named}
    return [f"{name} {runs[name]} instead of {version}" for name, version in named.items() if runs[name] != version]


def remedy(differing: list[str], stage: str, task: str, family: str) -> str:
    """What to do about them. Another Python is no package that a lock could install.

    DVC knows the file alone: what ran under other versions would be up to date under those of the file, too.
    """
    path = versions_file(stage, family)
    if all(each.startswith(f"{_PYTHON} ") for each in differing):
        pinned = read_versions(path)[_PYTHON]
        return f"its results may differ in their last bits; `make clean-venv`, then `make repro PYTHON=python{pinned}`"
    again = f"`dvc repro --force --single-item {stage}@{task}`"
    return f"install requirements.lock and run {again}, or write these into {path}"


def _running(name: str) -> str:
    if name == _PYTHON:
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "none"


def read_versions(path: Path) -> dict[str, str]:
    """The versions in a file of lines `name==version`, by lower-case name. Raises UserError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}): restore it with `git checkout {path}`") from error
    pairs = (line.removeprefix("# ").strip().partition("==") for line in lines)
    return {name.lower(): version for name, _, version in pairs if name}


def write_versions(root: Path) -> list[Path]:
    """Write the lock file's versions into the files under `root`; returns those that changed. Raises UserError."""
    locked = read_versions(root / LOCK)
    changed = []
    for path in sorted((root / FOLDER).glob("*/*.txt")):
        content = _content(path, locked)
        if path.read_bytes() != content:
            with atomic_write(path) as stream:
                stream.write(content)
            changed.append(path.relative_to(root))
    return changed


def _content(path: Path, locked: Mapping[str, str]) -> bytes:
    names = read_versions(path)
    if unknown := [name for name in names if not locked.get(name)]:
        raise UserError(f"{path} names {unknown[0]}, which is not in {LOCK}: fix the name, or run `make lock`")
    return "".join(f"{name}=={locked[name]}\n" for name in names).encode()


def main() -> None:
    """Write the files, and print which changed."""
    try:
        changed = write_versions(Path.cwd())
    except UserError as error:
        sys.exit(f"error: {error}")
    for path in changed:
        print(f"{path}: updated, so its stage is stale: `dvc repro`, or `transformer accept` if it cannot matter")


if __name__ == "__main__":
    main()
