"""A row's files in the artifact store; those on this machine can be checked."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

PARAMETERS = "params.json"
REPORTS = "reports"
MODEL = "MLmodel"


def local_folder(uri: str | None) -> Path | None:
    """The local folder of an MLflow artifact URI; None if it is on another machine."""
    parts = urlsplit(uri or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def has_files(folder: Path) -> bool:
    """Whether the folder has the row's parameters and reports."""
    return (folder / PARAMETERS).is_file() and (folder / REPORTS).is_dir()


def has_model(folder: Path) -> bool:
    """Whether the folder has a logged model."""
    return (folder / MODEL).is_file()
