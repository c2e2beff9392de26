"""What a row has in the artifact store, and whether it is still there, as far as it lies on this machine."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

PARAMETERS = "params.json"
REPORTS = "reports"
MODEL = "MLmodel"


def local_folder(uri: str | None) -> Path | None:
    """The folder that MLflow names by a URI; None where it is on another machine."""
    parts = urlsplit(uri or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def has_files(folder: Path) -> bool:
    """Whether the folder has what a row was given: its parameters and reports."""
    return (folder / PARAMETERS).is_file() and (folder / REPORTS).is_dir()


def has_model(folder: Path) -> bool:
    """Whether the folder has a logged model."""
    return (folder / MODEL).is_file()
