"""Finds rows that lost their files or their registered version, and restores both from what DVC has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformer.export.converted import CONVERTED
from transformer.results.chain import Chain
from transformer.results.content import Content, gathered
from transformer.results.origin import Origin
from transformer.tracking import model
from transformer.tracking.alias import all_versions
from transformer.tracking.artifacts import MODEL, PARAMETERS, REPORTS, has_files, has_model, local_folder, row_paths
from transformer.tracking.rows import log_files, register_row
from transformer.tracking.store import Store, all_runs, locked
from transformer.tracking.views import Views

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run

_NAMED = 3


def damaged_rows(store: Store) -> "dict[str, list[Run]]":
    """The complete rows, by key, that lack files, a model, or a registered version.

    A key has several rows only while two machines write it.
    """
    registered = {(version.run_id, version.source) for version in all_versions(store.client)}
    damaged: dict[str, list[Run]] = {}
    for row in all_runs(store, "tags.kind = 'result' AND attributes.status = 'FINISHED'"):
        logged = model.model_of(store, row)
        own = (row.info.run_id, "" if logged is None else model.source_of(logged.model_id))
        if own not in registered or not _has_files(store, row) or not _has_model(store, logged):
            damaged.setdefault(row.data.tags["row_key"], []).append(row)
    return damaged


def repair_row(store: Store, row: "Run", chain: Chain, content: Content, origin: Origin) -> None:
    """Restore what a row of the chain lacks, keeping its id; `write_row` adds its views.

    Raises content.MissingContentError, with nothing written, when a file of the chain cannot be found.
    """
    run_id = row.info.run_id
    with locked(store.root), gathered(content, row_paths(chain), store.root / ".dvc" / "tmp") as folder:
        logged, lost = model.model_of(store, row), set[str]()
        if logged is None:
            model_id = model.log_model(store, run_id, folder, chain.task)
            lost.add(CONVERTED)
        else:
            model_id = logged.model_id
            if not _has_model(store, logged):
                model.log_model_files(store, run_id, logged, folder, chain.task)
                lost.add(CONVERTED)
        if not _has_files(store, row):
            log_files(store, chain, run_id, folder)
            lost.update(Views._fields)
        for view in lost & row.data.tags.keys():
            store.client.delete_tag(run_id, view)
        register_row(store, chain, origin, run_id, model_id, folder)


def notice(damaged: "Sequence[Run]") -> str:
    """One line about rows that cannot be repaired."""
    names = ", ".join(f"`{row.info.run_name}`" for row in damaged[:_NAMED]) + (", ..." if len(damaged) > _NAMED else "")
    return (
        f"{len(damaged)} rows in MLflow lack their files or registered version, and DVC does not have their"
        f" outputs ({names}): run `dvc fetch --all-commits`, then sync, or delete these rows"
    )


def _has_files(store: Store, row: "Run") -> bool:
    if (folder := local_folder(row.info.artifact_uri)) is not None:
        return has_files(folder)
    return {PARAMETERS, REPORTS} <= {file.path for file in store.client.list_artifacts(row.info.run_id)}


def _has_model(store: Store, logged: "LoggedModel | None") -> bool:
    if logged is None:
        return False
    if (folder := local_folder(logged.artifact_location)) is not None:
        return has_model(folder)
    return any(file.path == MODEL for file in store.client.list_logged_model_artifacts(logged.model_id))
