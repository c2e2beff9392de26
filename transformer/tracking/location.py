"""Locates the tracking store: MLFLOW_TRACKING_URI, or a database in the repository's root."""

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
_PASSWORD = re.compile(r"//[^/?#\s]+@")
_OF_DATABRICKS = ("databricks", "databricks-uc", "uc")
_SERVERS = ("http", "https")


@dataclass(frozen=True)
class Location:
    """A tracking store's address."""

    uri: str
    """As MLflow expects it: absolute, with special characters in the path quoted."""
    database: Path | None = None
    """The file of a SQLite database."""
    folder: Path | None = None
    """The folder of MLflow's old file store."""

    @property
    def artifacts(self) -> str | None:
        """The URI of the artifact folder beside the database; None if we do not choose it."""
        return None if self.database is None else (self.database.parent / ARTIFACTS).as_uri()

    @property
    def is_server(self) -> bool:
        """Whether the store itself chooses a place for artifacts."""
        return urlsplit(self.uri).scheme in _SERVERS or self.uri.startswith(_OF_DATABRICKS)

    def __str__(self) -> str:
        return without_password(self.uri)


def locate(root: Path) -> Location:
    """The store of the repository at `root`, which relative addresses are resolved against.

    Raises UserError for an address that is not a persistent store.
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
    """Mask the password of any address in a text."""
    return _PASSWORD.sub("//***@", text)


def _of_sqlite(root: Path, given: str) -> Location:
    found = _SQLITE.fullmatch(given)
    path = unquote(found["path"] or "") if found else ""
    if found is None or not path or path == ":memory:" or path.startswith("file:"):
        raise UserError(
            f"{_VARIABLE} ({given}) does not name a database file: write sqlite:///PATH, or sqlite:////PATH from /"
        )
    query = found["query"]
    if query is not None and not _OPTIONS.fullmatch(query):
        raise UserError(f"{_VARIABLE} ({given}): what follows `?` is not an option; in a path write it as %3F")
    return _of_database((root / path).resolve(), f"?{query}" if query else "")


def _of_database(path: Path, options: str) -> Location:
    quoted = quote(str(path), safe=" +/")  # as SQLAlchemy reads it
    # Without the driver's name MLflow would create a folder named like the quoted path.
    scheme = "sqlite" if quoted == str(path) else "sqlite+pysqlite"
    return Location(f"{scheme}:///{quoted}{options}", database=path)
