"""A result's model in MLflow: logged with its bundle and code, and registered."""

import shutil
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.files import read_json
from transformer.core.task import family_module, open_task
from transformer.export.converted import CONVERTED, bundle_digest
from transformer.tracking.alias import living_run, place_alias
from transformer.tracking.artifacts import local_folder
from transformer.tracking.mlflow_inside import global_uri
from transformer.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run
    from mlflow.models import ModelSignature
    from mlflow.tracking import MlflowClient

BUNDLE, ARTIFACTS = "bundle", "artifacts"
"""The name of the model's artifact; and where MLflow puts artifacts, each under its folder's name."""
_PACKAGES = ("torch", "numpy", "pandas", "safetensors", "tokenizers", "pydantic", "spacy")


def log_model(store: Store, run_id: str, bundle: Path) -> str:
    """Log the bundle as a pyfunc model of the run. Returns the model's id in MLflow."""
    from mlflow.entities import LoggedModelOutput

    client = store.client
    task = str(read_json(bundle / "config.json")["task"])
    model = client.create_logged_model(store.experiment_id, name=task, source_run_id=run_id)
    log_model_files(store, run_id, model, bundle)
    client.finalize_logged_model(model.model_id, status="READY")
    client.log_outputs(run_id, models=[LoggedModelOutput(model.model_id, step=0)])
    return str(model.model_id)


def log_model_files(store: Store, run_id: str, model: "LoggedModel", bundle: Path) -> None:
    """Write the files of a model that the database already has."""
    task = str(read_json(bundle / "config.json")["task"])
    with tempfile.TemporaryDirectory(prefix="tracking-") as folder:
        local = Path(folder, "model")
        _save(local, bundle, task, run_id=run_id, model_id=model.model_id, location=model.artifact_location)
        store.client.log_model_artifacts(model.model_id, str(local))


def log_converted(store: Store, run_id: str, model: "LoggedModel", bundle: Path, converted: Path) -> None:
    """Add converted models to a logged model, beside its bundle. converted: their folder, which may be missing.

    A model with another bundle than theirs, as older code exported it, is written again with this one.
    """
    if not _has_bundle(model, bundle):
        log_model_files(store, run_id, model, bundle)
    if converted.is_dir():
        store.client.log_model_artifacts(model.model_id, str(converted), f"{ARTIFACTS}/{CONVERTED}")


def _has_bundle(model: "LoggedModel", bundle: Path) -> bool:
    folder = local_folder(model.artifact_location)
    return folder is not None and bundle_digest(folder / ARTIFACTS / BUNDLE) == bundle_digest(bundle)


def model_of(store: Store, row: "Run") -> "LoggedModel | None":
    """The row's model; if one was deleted, its replacement."""
    from mlflow.exceptions import MlflowException

    for output in row.outputs.model_outputs if row.outputs else []:
        try:
            return store.client.get_logged_model(output.model_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
    return None


def _save(local: Path, bundle: Path, task: str, *, run_id: str, model_id: str, location: str) -> None:
    from mlflow import pyfunc
    from mlflow.models import Model

    package = Path(__file__).parents[1]
    pyfunc.save_model(
        path=str(local),
        python_model=str(package / "export" / "pyfunc.py"),
        artifacts={BUNDLE: str(bundle)},
        code_paths=[str(package)],
        signature=_signature(task),
        pip_requirements=[f"{name}=={_public_version(name)}" for name in _PACKAGES],
        mlflow_model=Model(artifact_path=location, model_uuid=model_id, run_id=run_id, model_id=model_id),
    )
    for cache in [*local.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _signature(task: str) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    outputs = Schema([ColSpec(kind, name) for kind, name in family_module(open_task(task), "shown").ANSWERS])
    return ModelSignature(inputs=Schema([ColSpec("string", "text")]), outputs=outputs)


def _public_version(package: str) -> str:
    # Local builds such as 2.13.0+cpu are not on any public index.
    return metadata.version(package).partition("+")[0]


def register(
    client: "MlflowClient", *, name: str, alias: str, tags: Mapping[str, str], run_id: str, model_id: str
) -> None:
    """Register the model as a version of `name` with these tags, once per row; then place the alias.

    A version whose run is deleted no longer counts as the row's; one registered by older code gets missing tags.
    """
    from mlflow.exceptions import MlflowException

    try:
        client.get_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        client.create_registered_model(name)
    known = [version for version in versions_of(client, name, tags["row_key"]) if living_run(client, version.run_id)]
    for version in known:
        for tag, value in tags.items() - version.tags.items():
            client.set_model_version_tag(name, version.version, tag, value)
    if not known:
        with global_uri(client.tracking_uri):
            source = f"models:/{model_id}"
            client.create_model_version(name, source=source, run_id=run_id, tags=dict(tags), model_id=model_id)
    place_alias(client, name, alias)


def versions_of(client: "MlflowClient", name: str, row_key: str) -> list[Any]:
    """The row's registered versions."""
    return [*client.search_model_versions(f"name = '{name}' AND tags.row_key = '{row_key}'")]
