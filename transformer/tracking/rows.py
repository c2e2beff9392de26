"""The row of a result: the one flat MLflow run that contains all of it, found by its key."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transformer.core.files import read_json, write_json
from transformer.core.task import PRETRAINING, family_module, open_task
from transformer.results import git
from transformer.results.chain import (
    Chain,
    bundle_path,
    chains_in_lock,
    trained_path,
)
from transformer.results.content import Content, file_content, gathered
from transformer.results.headline import headline, shortfall
from transformer.results.lockfile import LOCK
from transformer.results.naming import export_params, registered_name, row_name
from transformer.results.origin import Origin, note_origin, noted_origin, uncommitted_code
from transformer.results.partial import claim_in_words, never_run
from transformer.tracking import model, record
from transformer.tracking.alias import entry_of, living_run, version_tags
from transformer.tracking.artifacts import PARAMETERS, REPORTS, let_replace, row_paths
from transformer.tracking.child import OUTPUT
from transformer.tracking.store import Store, all_runs, locked, repeated
from transformer.tracking.unique import (
    PARENT,
    RESULT,
    WRITER,
    discard_row,
    move_children,
    settled_row,
    writer,
)
from transformer.tracking.views import log_views

_BATCH = 1000
_PARAM_BATCH = 100


class UnrunParametersError(Exception):
    """dvc.lock has parameters for a stage that it never ran with."""


def write_row(
    store: Store, chain: Chain, content: Content, origin: Origin, confirm: Callable[[], None] = lambda: None
) -> bool:
    """Write the row of a chain if it does not exist yet, and add missing views (figures, converted models and page).

    Returns whether the row was written: not if another machine wrote it at the same moment and its row stays.
    confirm: called when all but the registered version has been written; raises if the chain is no longer a result.
    Raises, with nothing written, content.MissingContentError when a file of the chain cannot be found,
    UnrunParametersError, and what `confirm` raises.
    """
    key = chain.row_key()
    with locked(store.root):
        row = settled_row(store, key)
        if row is not None:
            log_views(store, chain, content, row)
            _adopt_children(store, chain, row.info.run_id)
            return False
        origin = noted_origin(store.root, key) or origin
        with gathered(content, row_paths(chain), store.root / ".dvc" / "tmp") as folder:
            if claimed := never_run(chain, lambda path: file_content(folder / path)):
                raise UnrunParametersError(claim_in_words(chain, claimed, LOCK))
            run_id = _written(store, chain, content, origin, folder, confirm)
        kept = settled_row(store, key)
        if kept is not None and kept.info.run_id == run_id:
            note_origin(store.root, key, origin)
            return True
        if kept is not None:
            move_children(store, run_id, kept.info.run_id)
            log_views(store, chain, content, kept)
            _adopt_children(store, chain, kept.info.run_id)
    return False


def _written(
    store: Store, chain: Chain, content: Content, origin: Origin, folder: Path, confirm: Callable[[], None]
) -> str:
    """Write the row whole; the chain's files are in `folder`. Returns its run id.

    If another machine has finished the row meanwhile and removed this one, MLflow refuses to go on, which is no error.
    """
    from mlflow.exceptions import MlflowException

    run_id = _create(store, chain, origin, folder)
    try:
        store.client.set_tag(run_id, "mlflow.note.content", _description(store, chain, run_id, folder))
        model_id = _fill(store, chain, run_id, folder)
        confirm()
        register_row(store, chain, origin, run_id, model_id, folder)
        log_views(store, chain, content, store.client.get_run(run_id))
        store.client.set_terminated(run_id, status="FINISHED", end_time=origin.time * 1000)
        store.client.delete_tag(run_id, WRITER)
        _adopt_children(store, chain, run_id)
    except BaseException as error:
        discard_row(store, run_id)
        if not isinstance(error, MlflowException) or settled_row(store, chain.row_key()) is None:
            raise
    return run_id


def orphans(store: Store) -> set[tuple[str, str | None]]:
    """The child runs that do not belong to a row yet: their stages' keys, and the models that they wrote."""
    children = [run.data.tags for run in all_runs(store, "tags.kind = 'stage'")]
    return {(tags["stage_key"], tags.get(OUTPUT)) for tags in children if PARENT not in tags}


def executions(chain: Chain) -> set[tuple[str, str | None]]:
    """The same of all child runs that are a result's. Code is in no key, so that of a training may be of others."""
    models = None, chain.outs.get(trained_path(chain.task))
    return {(chain.stage_key(stage.name), model) for stage in chain.executed for model in models}


def _create(store: Store, chain: Chain, origin: Origin, folder: Path) -> str:
    provenance = read_json(folder / "data" / chain.task / "corpus" / "provenance.json")
    corpus = " ".join(str(provenance[name]) for name in ("source", "configuration", "revision") if provenance.get(name))
    corpus += f" and {provenance['added_rows']} added rows" if "added_rows" in provenance else ""
    tags = {
        "mlflow.source.name": "dvc.yaml",
        "task": chain.task,
        "kind": RESULT,
        "row_key": chain.row_key(),
        WRITER: writer(store.root),
        "trained_by": chain.stage_run_name("train"),
        "corpus": corpus,
        **origin.tags(),
    }
    if uncommitted_code(store.root, chain, origin.commit):
        tags["git.dirty"] = "true"
    pretraining = folder / bundle_path(chain.task) / "model" / PRETRAINING
    if pretraining.is_file():
        tags["pretraining"] = read_json(pretraining)["sha256"]
    run = store.client.create_run(
        store.experiment_id,
        start_time=origin.time * 1000,
        run_name=origin.experiment or _name(store.root, chain, origin),
        tags=tags,
    )
    return str(run.info.run_id)


def _name(root: Path, chain: Chain, origin: Origin) -> str:
    """The row's name: with what differs from the parameters at the commit that the result was made on."""
    lock = git.blob(root, origin.commit, LOCK) if origin.commit else b""
    base = next((other for other in chains_in_lock(lock) if other.task == chain.task), chain)
    return row_name(chain, record.changes(chain, base))


def _description(store: Store, chain: Chain, run_id: str, folder: Path) -> str:
    """Markdown: the headline, the baselines that the model does not beat, and links to the report."""
    evaluation = read_json(folder / "reports" / chain.task / "evaluation.json")
    artifacts = f"#/experiments/{store.experiment_id}/runs/{run_id}/artifacts"
    metrics = family_module(open_task(chain.task), "shown").HEADLINE
    main = next(filter(None, (headline(name, evaluation) for name in metrics)), "")
    return (
        f"{'. '.join(filter(None, (main, shortfall(evaluation))))}\n\n"
        f"[Report]({artifacts}/reports/report.html) · [answers]({artifacts}/reports/predictions.tsv)"
    )


def _fill(store: Store, chain: Chain, run_id: str, folder: Path) -> str:
    """Log the row's content. Returns the id of the logged model."""
    model_id = model.log_model(store, run_id, folder, chain.task)
    _log_figures(store, chain, run_id, folder / "reports" / chain.task, model_id)
    _log_inputs(store, chain, run_id, folder / "data" / chain.task / "corpus")
    log_files(store, chain, run_id, folder)
    return model_id


def register_row(store: Store, chain: Chain, origin: Origin, run_id: str, model_id: str, folder: Path) -> None:
    """Register a row's model, and place the alias; the chain's files are in `folder` at their own paths."""
    tags = version_tags(chain, entry_of(chain, origin, folder))
    name, alias = registered_name(chain), export_params(chain)["alias"]
    repeated(lambda: model.register(store.client, name=name, alias=alias, tags=tags, run_id=run_id, model_id=model_id))


def log_files(store: Store, chain: Chain, run_id: str, folder: Path) -> None:
    """Log the parameters as DVC recorded them, and the reports that are in `folder` at their own paths."""
    write_json(folder / PARAMETERS, chain.params)
    let_replace(store.client.get_run(run_id).info.artifact_uri)
    store.client.log_artifact(run_id, str(folder / PARAMETERS))
    store.client.log_artifacts(run_id, str(folder / "reports" / chain.task), REPORTS)


def _log_figures(store: Store, chain: Chain, run_id: str, reports: Path, model_id: str) -> None:
    from mlflow.entities import Metric, Param, RunTag

    numbers, strings = record.final_figures(reports)
    params = [Param(name, value) for name, value in record.hyperparameters(chain).items()]
    # Time stamps are 0, so that a rebuilt row has identical points.
    metrics = [Metric(point.name, point.value, 0, point.step) for point in record.curves(reports)]
    metrics += [Metric(name, value, 0, 0, model_id=model_id) for name, value in numbers.items()]
    tags = [RunTag(name, value) for name, value in strings.items()]
    for batch in _slices(params, _PARAM_BATCH):
        store.client.log_batch(run_id, params=batch)
    for batch in _slices(metrics, _BATCH):
        store.client.log_batch(run_id, metrics=batch)
    store.client.log_batch(run_id, tags=tags)


def _slices(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _log_inputs(store: Store, chain: Chain, run_id: str, corpus: Path) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = [
        DatasetInput(
            Dataset(split.name, split.digest, source_type="corpus", source=split.source, profile=split.profile),
            tags=[InputTag("mlflow.data.context", split.context)],
        )
        for split in record.dataset_splits(chain.task, corpus)
    ]
    repeated(lambda: store.client.log_inputs(run_id, inputs))


def _adopt_children(store: Store, chain: Chain, row_id: str) -> None:
    own = executions(chain)
    for stage in chain.executed:
        filter_string = f"tags.stage_key = '{chain.stage_key(stage.name)}'"
        for run in store.client.search_runs([store.experiment_id], filter_string):
            if (run.data.tags["stage_key"], run.data.tags.get(OUTPUT)) not in own:
                continue
            if run.info.status == "RUNNING":  # its result exists, but its end was never reported
                store.client.set_terminated(run.info.run_id, status="KILLED")
            parent = run.data.tags.get(PARENT)
            if parent is None or (parent != row_id and living_run(store.client, parent) is None):  # a deleted row's
                store.client.set_tag(run.info.run_id, PARENT, row_id)
