"""Where the tracking store is: what MLFLOW_TRACKING_URI names, else a database in the repository's root."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from transformer.core.errors import UserError

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
_VARIABLE = "MLFLOW_TRACKING_URI"
_SQLITE = re.compile(r"sqlite(?:\+\w+)?://(?:/(?P<path>[^?]*))?(?:\?(?P<query>.*))?")
_OPTIONS = re.compile(r"[^=&]+=[^=&]*(&[^=&]+=[^=&]*)*")
_PASSWORD = re.compile(r"//[^/@\s]+@")
_OF_DATABRICKS = ("databricks", "databricks-uc", "uc")
_SERVERS = ("http", "https")


@dataclass(frozen=True)
class Location:
    """A tracking store's address."""

    uri: str
    """As MLflow takes it: absolute, and quoted where the path holds other characters than names have."""
    database: Path | None = None
    """The file, of a SQLite database."""
    folder: Path | None = None
    """Of MLflow's old file store."""

    @property
    def artifacts(self) -> str | None:
        """The folder of the artifacts, beside the database, as a URI; None where that is not ours to say."""
        return None if self.database is None else (self.database.parent / ARTIFACTS).as_uri()

    @property
    def is_server(self) -> bool:
        """Whether the store itself knows a place for the artifacts."""
        return urlsplit(self.uri).scheme in _SERVERS or self.uri.startswith(_OF_DATABRICKS)

    def __str__(self) -> str:
        return without_password(self.uri)


def locate(root: Path) -> Location:
    """The store of the repository at `root`, against which a relative address is resolved.

    Raises UserError for an address that names no store whose results would last.
    """
    given = os.environ.get(_VARIABLE)
    if not given:
        return _of_database(root.resolve() / DATABASE, "")
    if given.startswith("sqlite"):
        return _of_sqlite(root, given)
    parts = urlsplit(given)
    if parts.scheme not in ("", "file") or parts.netloc or given in _OF_DATABRICKS:
        return Location(given)
    folder = (root / (given if parts.scheme == "" else unquote(parts.path))).resolve()
    return Location(folder.as_uri(), folder=folder)


def without_password(text: str) -> str:
    """A text that may hold an address, fit to be shown."""
    return _PASSWORD.sub("//***@", text)


def _of_sqlite(root: Path, given: str) -> Location:
    found = _SQLITE.fullmatch(given)
    path = unquote(found["path"] or "") if found else ""
    if found is None or not path or path == ":memory:" or path.startswith("file:"):
        raise UserError(
            f"{_VARIABLE} ({given}) names no database file: write sqlite:///PATH, or sqlite:////PATH from /"
        )
    query = found["query"]
    if query is not None and not _OPTIONS.fullmatch(query):
        raise UserError(f"{_VARIABLE} ({given}): what follows `?` is no option; in a path write it as %3F")
    return _of_database((root / path).resolve(), f"?{query}" if query else "")


def _of_database(path: Path, options: str) -> Location:
    quoted = quote(str(path), safe=" +/")  # as SQLAlchemy reads it
    # With the driver's name MLflow does not take the quoted path for the path of a folder to create.
    scheme = "sqlite" if quoted == str(path) else "sqlite+pysqlite"
    return Location(f"{scheme}:///{quoted}{options}", database=path)
