"""MLflow client: the store, a result's run, its model and the alias of the best. For MLflow 3.17."""

import json
import logging
import os
import re
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from filelock import FileLock

from transformer.core.errors import UserError, in_markdown, printable
from transformer.core.files import read_json, read_table, write_json
from transformer.core.params import leaves
from transformer.core.task import open_task
from transformer.core.unchanged import repository
from transformer.data.tokenization import read_pretokenizers, read_rules
from transformer.inference.bundle import CONVERTED
from transformer.inference.serving import BEST, DETAILS
from transformer.workflow import run as content
from transformer.workflow.pipeline import bundle_path, converted_path
from transformer.workflow.results import Result
from transformer.workflow.run import Origin, safe, safe_names, storable

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.models import Model, ModelSignature
    from mlflow.tracking import MlflowClient

MLFLOW = "3.17"
_VARIABLE = "MLFLOW_TRACKING_URI"
_DATABASE, _ARTIFACTS = "mlflow.db", "mlartifacts"
_SERVERS = ("http", "https", "databricks", "databricks-uc", "uc")
_SQLITE = re.compile(r"sqlite(?:\+\w+)?:///([^?]+)(\?.*)?")
_PASSWORD = re.compile(r"(?<=//)\S+(?=@)|(?<=password=)[^&\s]+|(?<=token=)[^&\s]+")
_LETTERS = 300
_LOCK_SECONDS = 300
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",  # also for a model's file, which a server answers when its own storage has it
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it may contain a password
}
_BUNDLE = "bundle"
_EXAMPLES = 5
"""Inputs that are stored with a model."""
LONGEST_EXAMPLE = 2_000
"""Characters of such an input."""
_PACKAGES = (
    *("torch", "numpy", "pandas", "safetensors", "tokenizers", "pydantic", "threadpoolctl", "ctranslate2"),
    "onnxruntime",
)
VIEW = "results"
"""Name of the shared view of an experiment's table with scores as columns: MLflow's default has none."""
_VIEW_STATE = {
    **{"searchFilter": "", "orderByKey": "attributes.start_time", "orderByAsc": False, "startTime": "ALL"},
    **{"lifecycleFilter": "Active", "datasetsFilter": [], "modelVersionFilter": "All Runs", "columnOrder": []},
    **{"columnWidths": {}, "runsExpanded": {}, "runsPinned": [], "runsHidden": [], "runsVisibilityMap": {}},
    **{"runsHiddenMode": "FIRST_10_RUNS", "viewMaximized": False, "runListHidden": False, "groupBy": None},
    **{"isAccordionReordered": False, "groupsExpanded": {}, "autoRefreshEnabled": True},
    **{"useGroupedValuesInCharts": True},
}
_COLUMNS = 6
_POINTS = 1000  # in a request
_PARAMS = 100
_DIGEST_LENGTH, _DATASET_LENGTH = 36, 500  # MLflow's limits
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Store:
    """An experiment in a tracking store."""

    client: "MlflowClient"
    experiment_id: str
    lock: AbstractContextManager[Any]
    """Lock for one writer at a time, across clones; writers on other machines are not locked out."""

    def runs(self, where: str) -> "list[Run]":
        """Return the experiment's runs that match a filter."""
        search = self.client.search_runs
        return _pages(lambda token: search([self.experiment_id], where, max_results=1000, page_token=token))


def _pages(page: Callable[[str | None], Any]) -> list[Any]:
    found, token = [], None
    while True:
        found += (some := page(token))
        if not (token := some.token):
            return found


def store_uri(root: Path) -> str:
    """Return MLFLOW_TRACKING_URI, or a database in the repository's root; relative paths are resolved against the
    root.

    Raises UserError for SQLite without a file.
    """
    given = os.environ.get(_VARIABLE, "")
    if given and not given.startswith("sqlite"):
        return given
    parts = _SQLITE.fullmatch(given or f"sqlite:///{_DATABASE}")
    if parts is None or parts[1] == ":memory:":
        raise UserError(
            f"{_VARIABLE} ({given}) does not name a database file: write sqlite:///PATH, or sqlite:////PATH from /"
        )
    path = str((root / unquote(parts[1])).resolve())
    quoted = quote(path, safe=" +/")  # as SQLAlchemy reads it
    # Without the driver's name MLflow would create a folder named like the quoted path.
    return f"{'sqlite' if quoted == path else 'sqlite+pysqlite'}:///{quoted}{parts[2] or ''}"


def database_of(uri: str) -> Path | None:
    """Return the file of a SQLite database, which is on this machine; None for any other store."""
    parts = _SQLITE.fullmatch(uri)
    return Path(unquote(parts[1])) if parts else None


def is_server(uri: str) -> bool:
    """True if the store is behind a server, with its own artifact storage and UI."""
    return urlsplit(uri).scheme in _SERVERS or uri in _SERVERS


def without_password(text: str) -> str:
    """Mask the password of any address in a text."""
    return _PASSWORD.sub("***", text)


def in_words(error: Exception) -> str:
    """Format a store's error as one line: the database's own message if there is one, with passwords masked."""
    found = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    return printable(without_password(" ".join(str(found).split()))[:_LETTERS]) or type(error).__name__


def quiet_mlflow() -> None:
    """Configure mlflow before it is imported: no telemetry, errors only. The user's own settings stay."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.pyfunc").setLevel(logging.ERROR)  # if mlflow was imported before
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it logs the errors that it raises


def open_store(root: Path, experiment: str) -> Store:
    """Connect, creating the database and the experiment if they do not exist yet.

    Raises UserError when the experiment cannot take runs, and any error of mlflow, its database or the connection.
    """
    quiet_mlflow()
    import mlflow

    uri = store_uri(repository(root) or root)
    database = database_of(uri)
    lock = FileLock(f"{database}.lock", timeout=_LOCK_SECONDS) if database else nullcontext()
    mlflow.set_tracking_uri(uri)  # the registry's database looks models up through the global one
    mlflow.set_registry_uri(uri)  # whatever MLFLOW_REGISTRY_URI says; for processes started from here too
    with lock:
        if database and not database.exists():
            _create(database)
        client = mlflow.MlflowClient(uri, uri)
        return Store(client, _experiment(client, uri, experiment), lock)


def _create(database: Path) -> None:
    """Make the tables in a file beside it, then rename: MLflow never opens a database killed within its migrations."""
    import mlflow

    new = database.with_name(f"{database.name}.new")
    new.unlink(missing_ok=True)
    uri = f"sqlite+pysqlite:///{quote(str(new), safe=' +/')}"
    mlflow.MlflowClient(uri, uri)
    new.replace(database)


def _experiment(client: "MlflowClient", uri: str, name: str) -> str:
    from mlflow.exceptions import MlflowException

    database = database_of(uri)
    place = (database.parent / _ARTIFACTS).as_uri() if database else None
    found = client.get_experiment_by_name(name)
    if found is None:
        if place is None and not is_server(uri):
            raise UserError(
                f"{without_password(uri)} has no place for artifacts: use a server in front of it, or set a place with"
                f" `mlflow experiments create --experiment-name {name} --artifact-location URI`"
            )
        try:
            return str(client.create_experiment(name, artifact_location=place))
        except MlflowException:
            if (found := client.get_experiment_by_name(name)) is None:  # else another machine was faster
                raise
    if found.lifecycle_stage != "active":
        shown = shlex.quote(without_password(uri))
        raise UserError(
            f"the experiment `{name}` is deleted in MLflow: restore it with `{_VARIABLE}={shown} mlflow experiments"
            f" restore --experiment-id {found.experiment_id}`, or rename it there; then `transformer sync`"
        )
    if database and found.artifact_location != place and found.artifact_location.endswith(f"/{_ARTIFACTS}"):
        raise UserError(
            f"{database} was copied or moved from {unquote(urlsplit(found.artifact_location).path)}, where its files"
            f" are: move {database.name} and {_ARTIFACTS} away, and `transformer sync` writes all results anew here"
        )
    return str(found.experiment_id)


def finished_keys(store: Store) -> set[str]:
    """Return the keys of the results that have a whole run.

    Removes unfinished runs beside these: a server may have taken the first request of a writer that was given up.
    """
    runs = store.runs("tags.key LIKE '%'")
    finished = {run.data.tags["key"] for run in runs if run.info.status == "FINISHED"}
    for run in runs:
        if run.info.status != "FINISHED" and run.data.tags["key"] in finished:
            _discard(store, run.info.run_id)
    return finished


def write_run(
    store: Store, result: Result, origin: Origin, folder: Path, confirm: Callable[[], None] = lambda: None
) -> bool:
    """Write a result's run unless it has one; return True if written. An unfinished run is replaced.

    folder: has the result's files at their own paths; confirm: called at the end, raises if they have changed.
    Raises any error of mlflow, its database or the connection; then `sync` starts over.
    """
    with store.lock:
        for run in store.runs(f"tags.key = '{result.pipeline.key}'"):
            if run.info.status == "FINISHED":
                return False
            _discard(store, run.info.run_id)
        start, end = content.work_of(result, origin)
        tags = safe(content.tags(result, origin, folder))
        points = content.metrics(result.task, folder / "reports" / result.task)  # before there is a run to leave behind
        run = store.client.create_run(store.experiment_id, start, tags, content.run_name(result, origin))
        _fill(store, run, result, folder, points)
        _register(store, run.info.run_id, result, origin, folder)
        confirm()
        store.client.set_terminated(run.info.run_id, "FINISHED", end)
    return True


def _discard(store: Store, run_id: str) -> None:
    for version in _pages(lambda token: store.client.search_model_versions(f"run_id = '{run_id}'", page_token=token)):
        store.client.delete_model_version(version.name, version.version)
    for model in store.client.search_logged_models([store.experiment_id], f"source_run_id = '{run_id}'"):
        store.client.delete_logged_model(model.model_id)
    store.client.delete_run(run_id)


def _fill(store: Store, run: "Run", result: Result, folder: Path, metrics: Mapping[str, float]) -> None:
    """Log parameters, metrics, curves, data sets and files."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    client, run_id, task, time = store.client, run.info.run_id, result.task, run.info.start_time
    reports = folder / "reports" / task
    params = safe(content.hyperparameters(task, result.pipeline.params))
    for some in _slices([Param(name, value) for name, value in params.items()], _PARAMS):
        client.log_batch(run_id, params=some)
    curves = content.curves(reports)
    names = safe_names([*metrics, *(name for name, _, _ in curves)])
    points = [Metric(names[name], value, time, 0) for name, value in metrics.items()]
    points += [Metric(names[name], value, time, step) for name, value, step in curves]
    for batch in _slices(points, _POINTS):
        client.log_batch(run_id, metrics=batch)
    provenance = read_json(folder / "data" / task / "corpus" / "provenance.json")
    source = json.dumps({key: value for key, value in provenance.items() if isinstance(value, str)}, sort_keys=True)
    inputs = [
        DatasetInput(
            Dataset(storable(f"{task}/{split}", _DATASET_LENGTH), storable(provenance["sha256"][split], _DIGEST_LENGTH),
                    "corpus", storable(source), profile=json.dumps({"num_rows": rows})),
            [InputTag("mlflow.data.context", "testing" if split.startswith(("validation", "test")) else "training")],
        )
        for split, rows in sorted(provenance["rows"].items())
    ]  # fmt: skip
    client.log_inputs(run_id, inputs)
    with tempfile.TemporaryDirectory(prefix="run-") as temporary:
        write_json(Path(temporary, "params.json"), result.pipeline.params)
        client.log_artifacts(run_id, temporary)
    page = [f"reports/{task}/report.html"] if content.has_page(reports, result) else []
    for path in (*(path for path in result.pipeline.outs if path.startswith(f"reports/{task}/")), *page):
        name = path.removeprefix(f"reports/{task}/")
        if (folder / path).is_dir():
            client.log_artifacts(run_id, str(folder / path), f"reports/{name}")
        else:
            client.log_artifact(run_id, str(folder / path), "reports")
    link = f"#/experiments/{store.experiment_id}/runs/{run_id}/artifacts/reports"
    links = [f"[Report]({link}/report.html)"] * bool(page) + [f"[answers]({link}/predictions.tsv)"]
    note = f"{in_markdown(content.description(task, reports))}\n\n{' · '.join(links)}"
    client.set_tag(run_id, "mlflow.note.content", storable(note))
    scores = [names[name] for name in metrics if "." in name and "_minus_" not in name][:_COLUMNS]
    view = {**_VIEW_STATE, "selectedColumns": [f"metrics.`{name}`" for name in scores]}
    client.set_experiment_tag(store.experiment_id, f"mlflow.sharedViewState.{VIEW}", json.dumps(view))


def _slices(items: Sequence[_Found], size: int) -> Iterator[Sequence[_Found]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _register(store: Store, run_id: str, result: Result, origin: Origin, folder: Path) -> None:
    """Log the result's model, register it as a version, and give the alias to the best version."""
    from mlflow.entities import LoggedModelOutput
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model

    client, task, name = store.client, result.task, content.registered_name(result.pipeline)
    logged = client.create_logged_model(store.experiment_id, name=task, source_run_id=run_id)
    model_id = logged.model_id
    with tempfile.TemporaryDirectory(prefix="run-") as temporary:
        local, converted = Path(temporary, "model"), folder / converted_path(task)
        family = open_task(task).family
        texts = (row[family.question] for row in read_table(folder / "reports" / task / "predictions.tsv"))
        asked = partial(family.command_line().example, task, leaves(result.pipeline.params))
        examples = [asked(text)[1] for text in islice((t for t in texts if len(t) <= LONGEST_EXAMPLE), _EXAMPLES)]
        reference = Model(artifact_path=logged.artifact_location, model_uuid=model_id, run_id=run_id, model_id=model_id)
        save_model(local, folder / bundle_path(task), task, examples=examples, model=reference)
        if converted.is_dir() and "convert" in result.pipeline.stages:
            shutil.copytree(converted, local / "artifacts" / CONVERTED)
        client.log_model_artifacts(model_id, str(local))
    client.finalize_logged_model(model_id, status="READY")
    client.log_outputs(run_id, models=[LoggedModelOutput(model_id, step=0)])
    tags = safe(content.version_tags(result, origin, folder))
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    client.create_model_version(name, f"models:/{model_id}", run_id, tags, model_id=model_id)
    place_alias(client, name, tags["alias"])


def save_model(
    local: Path, bundle: Path, task: str, *, examples: Sequence[str] = (), model: "Model | None" = None
) -> None:
    """Save a task's bundle as a pyfunc model. examples: sample inputs; model: its entry in MLflow's database."""
    import pandas as pd
    from mlflow import pyfunc

    package, family = Path(__file__).parents[1], open_task(task).family
    packages = (*_PACKAGES, *(["spacy"] if _needs_spacy(bundle) else []))
    with tempfile.TemporaryDirectory(prefix="bundle-") as temporary:
        copied = shutil.copytree(bundle, Path(temporary, bundle.name))  # MLflow refuses links, as into DVC's cache
        pyfunc.save_model(
            path=str(local),
            python_model=str(package / "inference" / "pyfunc.py"),
            artifacts={_BUNDLE: str(copied)},
            code_paths=[str(package)],
            signature=_signature(task, family.request_params(read_json(bundle / "config.json"))),
            input_example=pd.DataFrame({"text": examples}) if examples else None,
            pip_requirements=[f"{name}=={_public_version(name)}" for name in packages],
            mlflow_model=model,
        )
    for cache in [*local.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _needs_spacy(bundle: Path) -> bool:
    """True if the bundle lacks spaCy's rules for a side that is split by spaCy."""
    rules = read_rules(bundle)
    return any(side.kind == "spacy" and side.language not in rules for side in read_pretokenizers(bundle).values())


def _signature(task: str, params: Sequence[tuple[str, str, Any]]) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    own = (("string", "engine", BEST), ("boolean", DETAILS, False))
    specs = [ParamSpec(name, kind, default) for kind, name, default in (*own, *params)]
    outputs = Schema([ColSpec(kind, name) for kind, name in open_task(task).family.answers])
    return ModelSignature(Schema([ColSpec("string", "text")]), outputs, ParamSchema(specs))


def _public_version(package: str) -> str:
    # Local builds such as 2.13.0+cpu are not on any public index.
    return metadata.version(package).partition("+")[0]


def versions_of(client: "MlflowClient", name: str, where: str = "") -> "list[ModelVersion]":
    """Return the registered versions of a name."""
    return _pages(lambda token: client.search_model_versions(f"name = '{name}'{where}", page_token=token))


def is_there(client: "MlflowClient", version: "ModelVersion") -> bool:
    """True if a version's run exists and is not deleted."""
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_run(str(version.run_id)).info.lifecycle_stage == "active")
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return False


def place_alias(client: "MlflowClient", name: str, alias: str) -> None:
    """Give the alias to the best of the versions comparable to the newest: same validation texts and metric.

    The choice depends on the versions' tags alone, not on the order in which they were registered.
    """
    competing = [each for each in versions_of(client, name) if each.tags.get("alias") == alias and "group" in each.tags]
    newest = next((each for each in sorted(competing, key=_age, reverse=True) if is_there(client, each)), None)
    if newest is None:
        return
    group = newest.tags["group"]
    ranked = sorted((each for each in competing if each.tags["group"] == group), key=_rank)
    best = next(each for each in ranked if is_there(client, each))
    held = client.get_registered_model(name).aliases.get(alias)
    before = next((version for version in competing if str(version.version) == str(held)), None)
    if before is None or str(before.version) != str(best.version):
        client.set_registered_model_alias(name, alias, best.version)
    if before is not None and before.tags["group"] != group:
        was, now = json.loads(before.tags["group"]), json.loads(group)
        other = " and ".join(each for each in now if was[each] != now[each])
        print(
            f"{name}@{alias} moved from version {before.version} to {best.version}, whose {other} are others, so their"
            " scores do not compare: `export.registered_name` gives models names of their own"
        )


def _age(version: "ModelVersion") -> tuple[float, str]:
    return float(version.tags["made"]), version.tags["key"]


def _rank(version: "ModelVersion") -> tuple[float, float, str]:
    value = float(version.tags["value"])
    return (-value if version.tags["higher_is_better"] == "true" else value, *_age(version))


def follow(store: Store, name: str, training: str, batches: Iterator[list[dict[str, Any]]]) -> None:
    """Log the curves of a running training, batch by batch, as a separate run with system metrics.

    training: identifies it; one that says `resumed` goes on in its run, if that is there, each point once.
    """
    from mlflow.entities import Metric
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    client, first = store.client, next(batches)
    resumed = any(event["event"] == "resumed" for event in first)
    found = store.runs(f"tags.training = '{training}' AND attributes.status != 'FINISHED'") if resumed else []
    run = found[0] if found else client.create_run(store.experiment_id, tags={"training": training}, run_name=name)
    run_id, status = run.info.run_id, "KILLED"
    own = [each for each in run.data.metrics if not each.startswith("system/")]
    logged = max((client.get_metric_history(run_id, each)[-1].step for each in own), default=-1)
    client.update_run(run_id, "RUNNING")
    monitor = SystemMetricsMonitor(run_id, resume_logging=bool(found))
    monitor.start()
    try:
        for batch in chain([first], batches):
            status = next((event["status"] for event in batch if event["event"] == "end"), status)
            new = [event for event in batch if event["event"] == "metrics" and event["step"] > logged]
            points = [
                Metric(name, event["values"][each], event["time"], event["step"])
                for event in new
                for each, name in safe_names(event["values"]).items()
            ]
            for some in _slices(points, _POINTS):
                client.log_batch(run_id, metrics=some)
    finally:
        monitor.finish()
        client.set_terminated(run_id, status)
