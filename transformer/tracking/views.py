"""What a row shows of its result besides the result itself: figures, converted models and the report's page."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transformer.core.files import read_json
from transformer.results.chain import CONVERT, EMPTY, FIGURES, VIEWS, Chain, conversion_path
from transformer.results.content import Content, MissingContentError, file_md5, gathered
from transformer.results.place import is_page_of, page_path
from transformer.tracking import model
from transformer.tracking.artifacts import REPORTS, let_replace, row_paths
from transformer.tracking.store import Store, all_runs
from transformer.tracking.unique import RESULT

if TYPE_CHECKING:
    from mlflow.entities import Run


class Views(NamedTuple):
    """The MD5 of a row's views, by tag: its figures, its converted models and its report page."""

    figures: str | None
    converted: str | None
    report: str | None


def recorded_views(store: Store) -> dict[str, Views]:
    """The keys of all complete rows of the task, with their views."""
    rows = all_runs(store, f"tags.kind = '{RESULT}' AND attributes.status = 'FINISHED'")
    return {run.data.tags["row_key"]: Views(*map(run.data.tags.get, Views._fields)) for run in rows}


def views(chain: Chain, directory: Path) -> Views:
    """The views of a result that DVC and the workspace have; None for a missing one."""
    page = page_path(directory, chain.task)
    report = file_md5(page) if is_page_of(directory, chain) else None
    return Views(chain.view_md5(FIGURES), chain.view_md5(CONVERT), report)


def log_views(store: Store, chain: Chain, content: Content, row: "Run") -> None:
    """Log changed views, which replace earlier ones by name. Views whose files cannot be found are skipped."""
    run_id, tags, new = row.info.run_id, row.data.tags, views(chain, content.directory)

    def begin(view: str, *anew: str) -> None:
        store.client.set_tag(run_id, view, "")  # until its files are there: the process may end meanwhile
        let_replace(row.info.artifact_uri, *anew)

    if new.report not in (None, tags.get("report")):
        begin("report")
        store.client.log_artifact(run_id, str(page_path(content.directory, chain.task)), REPORTS)
        store.client.set_tag(run_id, "report", new.report)
    near = store.root / ".dvc" / "tmp"
    if new.figures not in (None, tags.get("figures")):
        path = VIEWS[FIGURES].path(chain.task)
        with suppress(MissingContentError), gathered(content, [path], near) as folder:
            begin("figures", f"{REPORTS}/{FIGURES}")
            store.client.log_artifacts(run_id, str(folder / path), f"{REPORTS}/{FIGURES}")
            store.client.set_tag(run_id, "figures", new.figures)
    if new.converted not in (None, tags.get("converted")):
        path = VIEWS[CONVERT].path(chain.task)
        nothing = chain.outs.get(path) == EMPTY  # `convert.formats: []`
        paths = [*row_paths(chain), conversion_path(chain.task), *(() if nothing else (path,))]
        with suppress(MissingContentError), gathered(content, paths, near) as folder:
            begin("converted")
            _log_converted(store, chain, row, folder)
            store.client.set_tag(run_id, "converted", new.converted)


def _log_converted(store: Store, chain: Chain, row: "Run", folder: Path) -> None:
    """Add the converted models to the row's model, and their sizes to the row; `folder` has all of the files."""
    from mlflow.entities import Metric

    run_id, report = row.info.run_id, folder / conversion_path(chain.task)
    if logged := model.model_of(store, row):
        model.log_converted(store, run_id, logged, folder, chain.task)
    store.client.log_artifact(run_id, str(report), REPORTS)
    sizes = {f"{CONVERT}.{engine}.bytes": found.get("bytes") for engine, found in read_json(report).items()}
    changed = [name for name, size in sizes.items() if size not in (None, row.data.metrics.get(name))]
    # A step for each conversion, since MLflow shows the last one's.
    steps = {name: len(store.client.get_metric_history(run_id, name)) for name in changed}
    store.client.log_batch(run_id, metrics=[Metric(name, sizes[name], 0, step) for name, step in steps.items()])
