"""The DVC repository of the current folder, or of a temporary clone by `dvc exp run --temp` or DVC's queue."""

import os
from pathlib import Path

from transformer.core.errors import UserError

_CLONES = Path(".dvc", "tmp", "exps")


def repository(folder: Path) -> Path | None:
    """Return the DVC repository of `folder`; for a temporary clone, the original one; None outside of any.

    DVC removes a clone when its experiment ends, so lasting files belong in the original, which DVC names in
    DVC_ROOT. That variable is ignored outside temporary clones: it may name another project, a stage of which runs
    this one.
    """
    folder = folder.resolve()
    if given := os.environ.get("DVC_ROOT"):
        root = Path(given).resolve()
        if folder.is_relative_to(root / _CLONES):
            return root
    return next((each for each in (folder, *folder.parents) if (each / ".dvc").is_dir()), None)


def hint_of_clone(path: Path) -> str:
    """Return a hint for messages that `path` is missing or empty, in a temporary clone.

    A clone contains only what git tracks. A file read from the repository unknown to DVC would not be a dependency of
    the result, and changes to it would go unnoticed.
    """
    root = _repository_of_clone()
    if root is None or path.is_absolute() or not (root / path).exists():
        return ""
    return f"; a temporary clone sees only what git tracks, so name the absolute path {(root / path).resolve()}"


def refuse_outside_of_clone(path: Path) -> None:
    """Raise UserError for a relative path that leads out of a temporary clone, where a stale copy may be.

    `dvc exp run --temp --copy-paths ../corpus` puts one beside the clones. It stays, and later experiments find it.
    """
    root = _repository_of_clone()
    if root is not None and Path(os.path.normpath(path)).parts[:1] == ("..",):
        raise UserError(f"{path} leads out of the temporary clone, so name the absolute path {(root / path).resolve()}")


def refuse_other_repository(path: Path) -> None:
    """Raise UserError for a path in a folder next to dvc.yaml with its own `.dvc`: DVC would see it as empty.

    path: relative to dvc.yaml's folder, which is the current one, or absolute.
    """
    top = Path(*path.parts[:1])
    if not path.is_absolute() and path.parts[:1] != ("..",) and top != Path() and (top / ".dvc").is_dir():
        raise UserError(
            f"{top} has a `.dvc`, so DVC takes it for another repository and sees no change of its files: remove"
            f" {top / '.dvc'}, or move {top} out of the project and name it there"
        )


def _repository_of_clone() -> Path | None:
    """Return the repository that the current folder is a temporary clone of; None in the repository itself."""
    here = Path.cwd()
    root = repository(here)
    return root if root is not None and here.resolve().is_relative_to(root / _CLONES) else None
