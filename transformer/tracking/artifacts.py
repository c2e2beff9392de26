"""A row's files in the artifact store; those on this machine can be checked."""

import shutil
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from transformer.results.chain import Chain, bundle_path

PARAMETERS = "params.json"
REPORTS = "reports"
MODEL = "MLmodel"


def local_folder(uri: str | None) -> Path | None:
    """The local folder of an MLflow artifact URI or path; None if it is on another machine."""
    if uri and uri.startswith("/"):
        return Path(uri)
    parts = urlsplit(uri or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def row_paths(chain: Chain) -> list[str]:
    """The outputs that a row is built from."""
    task = chain.task
    outs = (path for stage in chain.stages for path in stage.outs)
    reports = sorted(path for path in outs if path.startswith(f"reports/{task}/"))
    return [f"data/{task}/corpus/provenance.json", bundle_path(task), *reports]


def let_replace(uri: str | None, *anew: str) -> None:
    """Let the files of a local artifact folder be written again: copies of files in DVC's cache are read-only.

    anew: its subfolders that are written as a whole, and so are removed; a store on another machine keeps them.
    """
    if (folder := local_folder(uri)) is None:
        return
    for name in anew:
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in folder.rglob("*"):
        if path.is_file() and not path.stat().st_mode & stat.S_IWUSR:
            with suppress(PermissionError):  # another user's, which may not be among those to be written
                path.chmod(path.stat().st_mode | stat.S_IWUSR)


def has_files(folder: Path) -> bool:
    """Whether the folder has the row's parameters and reports."""
    return (folder / PARAMETERS).is_file() and (folder / REPORTS).is_dir()


def has_model(folder: Path) -> bool:
    """Whether the folder has a logged model."""
    return (folder / MODEL).is_file()
