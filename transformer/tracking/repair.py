"""Rows that lost their files or their registered version: found, and given them again from what DVC has."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from transformer.tracking import model
from transformer.tracking.alias import Entry, all_versions, entry_of, version_tags
from transformer.tracking.chain import Chain
from transformer.tracking.content import Content, gathered
from transformer.tracking.naming import export_params, registered_name
from transformer.tracking.origin import Origin
from transformer.tracking.rows import PARAMETERS, all_runs, log_files, row_paths
from transformer.tracking.store import Store, locked

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run

_MODEL = "MLmodel"
_VIEWS = ("figures", "report")
_NAMED = 3


def damaged_rows(store: Store) -> "dict[str, Run]":
    """The complete rows, by their keys, that lack files, a model, or a version whose tags say what it competes on."""
    registered = {version.run_id for version in all_versions(store.client) if Entry.read(version.tags)}
    return {
        row.data.tags["row_key"]: row
        for row in all_runs(store, "tags.kind = 'result' AND attributes.status = 'FINISHED'")
        if row.info.run_id not in registered or not _has_files(store, row) or not _has_model(store, row)
    }


def repair_row(store: Store, row: "Run", chain: Chain, content: Content, origin: Origin) -> None:
    """Give a row of the chain what it lacks, under its own id; its figures and page come with `write_row`.

    Raises content.MissingContentError, with nothing written, when a file of the chain is nowhere.
    """
    run_id = row.info.run_id
    with locked(store.root), gathered(content, row_paths(chain), store.root / ".dvc" / "tmp") as folder:
        bundle = folder / "models" / chain.task / "bundle"
        logged = _model(store, row)
        if logged is None:
            model_id = model.log_model(store, run_id, bundle)
        else:
            model_id = logged.model_id
            if not _has_model(store, row):
                model.log_model_files(store, run_id, logged, bundle)
        if not _has_files(store, row):
            log_files(store, chain, run_id, folder)
            for view in _VIEWS:
                if view in row.data.tags:
                    store.client.delete_tag(run_id, view)
        model.register(
            store.client,
            name=registered_name(chain),
            alias=export_params(chain)["alias"],
            tags=version_tags(chain, entry_of(chain, origin, folder)),
            run_id=run_id,
            model_id=model_id,
        )


def notice(damaged: "Sequence[Run]") -> str:
    """One line on rows that nothing can be given to."""
    names = ", ".join(f"`{row.info.run_name}`" for row in damaged[:_NAMED]) + (", ..." if len(damaged) > _NAMED else "")
    return (
        f"{len(damaged)} rows in MLflow lack their files or registered version, and DVC has not what they were made"
        f" from ({names}): run `dvc fetch --all-commits`, then sync, or delete these rows"
    )


def _model(store: Store, row: "Run") -> "LoggedModel | None":
    """The row's model; where one was deleted, the one that took its place."""
    from mlflow.exceptions import MlflowException

    for output in row.outputs.model_outputs if row.outputs else []:
        try:
            return store.client.get_logged_model(output.model_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
    return None


def _has_files(store: Store, row: "Run") -> bool:
    if (folder := _local(row.info.artifact_uri)) is not None:
        return (folder / PARAMETERS).is_file() and (folder / "reports").is_dir()
    return any(file.path == PARAMETERS for file in store.client.list_artifacts(row.info.run_id))


def _has_model(store: Store, row: "Run") -> bool:
    logged = _model(store, row)
    if logged is None:
        return False
    if (folder := _local(logged.artifact_location)) is not None:
        return (folder / _MODEL).is_file()
    return any(file.path == _MODEL for file in store.client.list_logged_model_artifacts(logged.model_id))


def _local(uri: str | None) -> Path | None:
    parts = urlsplit(uri or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None
