"""All uses of MLflow's database schema and of its client's internals; written for MLflow 3.17.

A test pins the version (tests/results/test_inside.py), so that an upgrade starts with a review of this file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MLFLOW = "3.17"

LOCATIONS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
    ("trace_tags", "value"),
)
"""The tables and columns with absolute artifact locations."""
FOLDERS = (("runs", "artifact_uri"), ("logged_models", "artifact_location"))
"""Those that locate whole folders."""
TABLES_ARE_MADE = "SELECT 1 FROM sqlite_master WHERE name = 'runs'"
BASES = """
SELECT artifact_location FROM experiments WHERE name IN ({names})
UNION SELECT substr(artifact_uri, 1, length(artifact_uri) - length('/' || run_uuid || '/artifacts'))
FROM runs JOIN experiments USING (experiment_id) WHERE experiments.name IN ({names})
"""
"""The artifact folders of the named experiments."""
ROWS = """
SELECT t.value, f.value, c.value, r.artifact_uri,
(SELECT m.artifact_location FROM logged_models m WHERE m.source_run_id = r.run_uuid AND m.lifecycle_stage = 'active'),
EXISTS (SELECT 1 FROM model_versions v WHERE v.run_id = r.run_uuid AND v.current_stage != 'Deleted_Internal')
FROM tags t JOIN runs r ON r.run_uuid = t.run_uuid
JOIN tags k ON k.run_uuid = t.run_uuid AND k.key = 'kind' AND k.value = 'result'
LEFT JOIN tags f ON f.run_uuid = t.run_uuid AND f.key = 'figures'
LEFT JOIN tags c ON c.run_uuid = t.run_uuid AND c.key = 'converted'
WHERE t.key = 'row_key' AND r.status = 'FINISHED' AND r.lifecycle_stage = 'active'
"""
"""All complete rows: key, figures, converted, artifact location, model location, whether a version is registered."""


@contextmanager
def without_syncing(*, new: bool) -> Iterator[None]:
    """Skip the disk sync per transaction while a new database runs its migrations, about 60 transactions."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def relax(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    if new:
        event.listen(Engine, "connect", relax)
    try:
        yield
    finally:
        if new:
            event.remove(Engine, "connect", relax)


@contextmanager
def global_uri(uri: str) -> Iterator[None]:
    """Set MLflow's global tracking URI: the registry's database store looks models up through it, not its client's."""
    import mlflow

    given = os.environ.get("MLFLOW_TRACKING_URI")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
        if given is None:
            os.environ.pop("MLFLOW_TRACKING_URI", None)
        else:  # not what an earlier call left as the global one
            os.environ["MLFLOW_TRACKING_URI"] = given
