"""Repairs a store that was moved or copied, by rewriting the absolute locations that MLflow records."""

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from transformer.core.errors import UserError
from transformer.registry import TASKS
from transformer.tracking.location import ARTIFACTS, Location
from transformer.tracking.mlflow_inside import BASES, FOLDERS, LOCATIONS, TABLES_ARE_MADE

_SECONDS = 60


def settle(location: Location) -> None:
    """Rewrite the recorded locations of our artifacts if a local database has moved away from them.

    Artifacts that exist only at the recorded location are copied; nothing is written or removed there. The caller
    holds the store's lock. Raises UserError when the database cannot be changed.
    """
    if location.database is None or not location.database.is_file():
        return
    if not (bases := recorded_elsewhere(location)):
        return
    here = str(location.artifacts)
    try:
        with closing(sqlite3.connect(location.database, timeout=_SECONDS)) as connection:
            for base in bases:
                _copy_missing(connection, base, here)
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for base in bases:
                    _rewrite(connection, base, here)
    except (sqlite3.Error, OSError) as error:
        raise UserError(
            f"{location.database} was moved or copied here, and its artifact locations ({_path(bases[0])})"
            f" cannot be changed ({error}): make it writable, with free space beside it, and try again"
        ) from error
    for base in bases:
        print(
            f"tracking: the artifacts of {location.database} are now beside it, not in {_path(base)}", file=sys.stderr
        )


def recorded_elsewhere(location: Location) -> list[str]:
    """The artifact folders that the database records for our experiments and that are not beside it.

    Only those that this project created; other locations were chosen on purpose. Raises what sqlite3 raises.
    """
    names = ", ".join("?" for _ in TASKS)
    # Not read-only: a killed writer's transaction must be rolled back before anything can be read.
    database = f"{Path(str(location.database)).as_uri()}?mode=rw"
    with closing(sqlite3.connect(database, uri=True, timeout=_SECONDS)) as connection:
        if not connection.execute(TABLES_ARE_MADE).fetchall():
            return []  # MLflow has not made its tables yet
        rows = connection.execute(BASES.format(names=names), (*TASKS, *TASKS)).fetchall()
    ours = (base for (base,) in rows if base and base.startswith("file:") and base.endswith(f"/{ARTIFACTS}"))
    return sorted(base for base in ours if base != location.artifacts)


def _rewrite(connection: sqlite3.Connection, base: str, here: str) -> None:
    for table, column in _present(connection, LOCATIONS):
        connection.execute(
            f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} = ? OR substr({column}, 1, ?) = ?",
            (here, len(base) + 1, base, len(base) + 1, f"{base}/"),
        )


def _copy_missing(connection: sqlite3.Connection, base: str, here: str) -> None:
    """Copy artifacts that are not here yet, as when only the database was copied."""
    for table, column in _present(connection, FOLDERS):
        for (value,) in connection.execute(f"SELECT {column} FROM {table}").fetchall():
            if not value or not value.startswith(f"{base}/"):
                continue
            source = _path(value).parent
            target = _path(here) / source.relative_to(_path(base))
            if source.is_dir() and not target.exists():
                part = target.with_name(f".{target.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(source, part)
                part.rename(target)


def _present(connection: sqlite3.Connection, columns: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """The columns that this version of MLflow has."""
    for table, column in columns:
        if column in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
            yield table, column


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
