"""A result's model in MLflow: logged with its bundle and code, and registered."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.files import read_json, read_table
from transformer.core.task import family_module, open_task
from transformer.export.converted import CONVERTED, bundle_digest
from transformer.export.serving import BEST
from transformer.results.chain import CONVERT, VIEWS, bundle_path
from transformer.text.pretokenize import read_pretokenizers, read_rules
from transformer.tracking.alias import place_alias
from transformer.tracking.artifacts import let_replace, local_folder
from transformer.tracking.mlflow_inside import global_uri
from transformer.tracking.store import Store, existing, uploading

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run
    from mlflow.models import Model, ModelSignature
    from mlflow.tracking import MlflowClient

BUNDLE, ARTIFACTS = "bundle", "artifacts"
"""The name of the model's artifact; and where MLflow puts artifacts, each under its folder's name."""
_PACKAGES = (
    *("torch", "numpy", "pandas", "safetensors", "tokenizers", "pydantic", "threadpoolctl", "ctranslate2"),
    "onnxruntime",
)


def log_model(store: Store, run_id: str, folder: Path, task: str) -> str:
    """Log a task's bundle as a pyfunc model of the run. Returns the model's id in MLflow.

    folder: the result's bundle and answers, each at its own path in it.
    """
    from mlflow.entities import LoggedModelOutput

    client = store.client
    model = client.create_logged_model(store.experiment_id, name=task, source_run_id=run_id)
    log_model_files(store, run_id, model, folder, task)
    client.finalize_logged_model(model.model_id, status="READY")
    client.log_outputs(run_id, models=[LoggedModelOutput(model.model_id, step=0)])
    return str(model.model_id)


def log_model_files(store: Store, run_id: str, model: "LoggedModel", folder: Path, task: str) -> None:
    """Write the files of a model that the database already has. folder: as for `log_model`."""
    from mlflow.models import Model

    path, model_id = model.artifact_location, model.model_id
    with tempfile.TemporaryDirectory(prefix="tracking-") as temporary:
        local, bundle = Path(temporary, "model"), folder / bundle_path(task)
        first = next(read_table(folder / "reports" / task / "predictions.tsv"), {})
        example = first.get(_serving(task).QUESTION)
        reference = Model(artifact_path=path, model_uuid=model_id, run_id=run_id, model_id=model_id)
        save_model(local, bundle, task, example=example, model=reference)
        let_replace(path)
        with uploading():
            store.client.log_model_artifacts(model.model_id, str(local))


def log_converted(store: Store, run_id: str, model: "LoggedModel", folder: Path, task: str) -> None:
    """Add converted models, if `folder` has any, to a logged model, beside its bundle. folder: as for `log_model`.

    A model with another bundle than theirs, as other code exported it, is written again with this one.
    """
    if not _has_bundle(model, folder / bundle_path(task)):
        log_model_files(store, run_id, model, folder, task)
    let_replace(model.artifact_location, f"{ARTIFACTS}/{CONVERTED}")
    if (converted := folder / VIEWS[CONVERT].path(task)).is_dir():
        with uploading():
            store.client.log_model_artifacts(model.model_id, str(converted), f"{ARTIFACTS}/{CONVERTED}")


def _has_bundle(model: "LoggedModel", bundle: Path) -> bool:
    folder = local_folder(model.artifact_location)
    return folder is not None and bundle_digest(folder / ARTIFACTS / BUNDLE) == bundle_digest(bundle)


def model_of(store: Store, row: "Run") -> "LoggedModel | None":
    """The row's model; if one was deleted, its replacement."""
    outputs = row.outputs.model_outputs if row.outputs else []
    models = (existing(partial(store.client.get_logged_model, output.model_id)) for output in outputs)
    return next((model for model in models if model is not None), None)


def save_model(
    local: Path, bundle: Path, task: str, *, example: str | None = None, model: "Model | None" = None
) -> None:
    """Save a task's bundle as a pyfunc model. example: a text to ask it; model: how MLflow's database knows it."""
    import pandas as pd
    from mlflow import pyfunc

    package, params = Path(__file__).parents[1], _serving(task).params_of(read_json(bundle / "config.json"))
    packages = (*_PACKAGES, *(["spacy"] if _needs_spacy(bundle) else []))
    pyfunc.save_model(
        path=str(local),
        python_model=str(package / "export" / "pyfunc.py"),
        artifacts={BUNDLE: str(bundle)},
        code_paths=[str(package)],
        signature=_signature(task, params),
        input_example=None if example is None else pd.DataFrame({"text": [example]}),
        pip_requirements=[f"{name}=={_public_version(name)}" for name in packages],
        mlflow_model=model,
    )
    for cache in [*local.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _serving(task: str) -> Any:
    return family_module(open_task(task), "serving")


def _needs_spacy(bundle: Path) -> bool:
    """Whether the bundle lacks the rules of a side that is split as spaCy does."""
    rules = read_rules(bundle)
    return any(side.kind == "spacy" and side.language not in rules for side in read_pretokenizers(bundle).values())


def _signature(task: str, params: Sequence[tuple[str, str, Any]]) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    specs = [ParamSpec(name, kind, default) for kind, name, default in (("string", "engine", BEST), *params)]
    outputs = Schema([ColSpec(kind, name) for kind, name in family_module(open_task(task), "shown").ANSWERS])
    return ModelSignature(Schema([ColSpec("string", "text")]), outputs, ParamSchema(specs))


def _public_version(package: str) -> str:
    # Local builds such as 2.13.0+cpu are not on any public index.
    return metadata.version(package).partition("+")[0]


def register(
    client: "MlflowClient", *, name: str, alias: str, tags: Mapping[str, str], run_id: str, model_id: str
) -> None:
    """Register the model as a version of `name` with these tags, once per run; then place the alias.

    One of a logged model that was deleted goes: it would load until `mlflow gc`.
    """
    if existing(partial(client.get_registered_model, name)) is None:
        client.create_registered_model(name)
    source, registered = source_of(model_id), False
    for version in versions_of(client, name, tags["row_key"]):
        if version.run_id == run_id and version.source != source:
            client.delete_model_version(name, version.version)
        elif version.run_id == run_id:
            registered = True
    if not registered:
        with global_uri(client.tracking_uri):
            client.create_model_version(name, source=source, run_id=run_id, tags=dict(tags), model_id=model_id)
    place_alias(client, name, alias)


def source_of(model_id: str) -> str:
    """The source of a version that is this logged model."""
    return f"models:/{model_id}"


def versions_of(client: "MlflowClient", name: str, row_key: str) -> list[Any]:
    """The row's registered versions."""
    return [*client.search_model_versions(f"name = '{name}' AND tags.row_key = '{row_key}'")]
