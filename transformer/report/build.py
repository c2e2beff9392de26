"""Build a result's report page from its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from transformer.core.files import atomic_write, read_json, write_json
from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task, family_module, open_task, with_labels
from transformer.evaluation.headline import shortfall
from transformer.report.content import Page, Section, Table
from transformer.report.render import render
from transformer.report.result import (
    Files,
    all_figures,
    conversions,
    duplicates,
    explained,
    facts,
    parameters,
    training_times,
)
from transformer.workflow.differences import differences, shown_params
from transformer.workflow.dvc import require_outputs
from transformer.workflow.git import is_shallow
from transformer.workflow.output import SAME, Shown, tables
from transformer.workflow.pipeline import Pipeline
from transformer.workflow.results import WORKSPACE, Result, find_results, result_before
from transformer.workflow.run import current_origin, registered_name
from transformer.workflow.times import times_of

_COMMIT = 10


class PageCode(Protocol):
    """Interface of families/F/report.py: the family's part of a page."""

    def summary(self, result: Files) -> str:
        """Summarize the result's quality in one line."""

    def weaknesses(self, task: Task, result: Files) -> Iterator[str]:
        """Yield the model's weaknesses, one line each."""

    def sections(self, task: Task, result: Files) -> Iterator[Section]:
        """Yield the sections of the page, the most informative first."""


class ReportParams(StageParams):
    """No parameters: the page shows the parameters of the result."""


def write_report(task: Task, params: ReportParams, *, root: Path, observer: Observer) -> dict[str, float]:
    """Write the page, and the result's key to result.json; return the page's size as a metric."""
    page = write_page(root, task.name)
    write_json(page.with_name("result.json"), {"key": _key(root, task.name)})
    return {"kilobytes": round(page.stat().st_size / 1000)}


def write_page(root: Path, task: str) -> Path:
    """Write `reports/TASK/report.html` for the result in the workspace, compared with the last committed one before
    it.

    Raises UserError when dvc.lock has no consistent result, or the workspace's files do not belong to the result.
    """
    page, target = render(_page(root, task)), root / "reports" / task / "report.html"
    noted = target.with_name("result.json")
    if noted.is_file() and read_json(noted)["key"] != _key(root, task):
        noted.unlink()  # so that the stage runs when its result is restored
    with atomic_write(target) as stream:
        stream.write(page.encode())
    return target


def _key(root: Path, task: str) -> str:
    return find_results(root, WORKSPACE, task).results[task].pipeline.key


def _page(root: Path, task: str) -> Page:
    own = find_results(root, WORKSPACE, task).results[task]
    pipeline = own.pipeline
    files = Files(root, task, stages=frozenset(pipeline.stages))
    require_outputs(root, _shown(pipeline))
    declared = with_labels(open_task(task), root / "data" / task / "corpus")
    code: PageCode = family_module(declared, "report")
    return Page(
        title=f"{task.capitalize()}: {registered_name(pipeline)}",
        headline=". ".join(filter(None, (code.summary(files), shortfall(files.evaluation)))),
        weaknesses=list(code.weaknesses(declared, files)),
        facts=[*_origin(own), *facts(files)],
        sections=[*code.sections(declared, files), *conversions(files), _change(result_before(own), own)],
        folded=[
            *(each for each in [explained(files)] if each.pictures),
            *([training_times(times.points)] if (times := times_of(own, "train")) and times.points else []),
            duplicates(files),
            all_figures(files),
            parameters(shown_params(pipeline)),
        ],
        attention=files.attention(),
    )


def _shown(pipeline: Pipeline) -> dict[str, str]:
    """Return the outputs that a page is made from, with their MD5."""
    folders = (f"reports/{pipeline.task}/", f"data/{pipeline.task}/corpus")
    return {path: md5 for path, md5 in pipeline.outs.items() if path.startswith(folders)}


def _origin(result: Result) -> Iterator[tuple[str, str]]:
    origin = current_origin(result.root)
    if origin.experiment:
        yield "experiment", origin.experiment
    commit = origin.commit[:_COMMIT] if origin.commit else "none"
    yield "commit", f"{commit}, with changes of the code that were not committed" if origin.dirty else commit
    yield "result", result.pipeline.key


def _change(before: Result | None, own: Result) -> Section:
    title = "Change from the previous result"
    if before is None:
        shallow = is_shallow(own.root)
        more = " This clone has only a part of the history: `git fetch --unshallow` brings the rest." if shallow else ""
        return Section(title, f"No commit holds another result of this task.{more}")
    samples = int(own.pipeline.section("evaluate")["bootstrap_samples"])
    shown = list(tables(differences(before, own, samples=samples), before.name, "this result"))
    text = f"The previous result is the one that commit {before.name} holds."
    text += f" {shown[0].note}" if shown[0].note else ""
    text += in_common(shown)
    # Readers want the change of the scores first; the list of modules stays folded.
    rows = [Table(each.title, each.header, each.rows, folded=each.title == "Code") for each in shown if each.rows]
    return Section(title, text, tables=rows)


def in_common(shown: Sequence[Shown]) -> str:
    """Describe what two results share, in a sentence that continues a paragraph."""
    same = [table.title.lower() for table in shown if table.note == SAME]
    return f" The same in both: {', '.join(same)}." if same else ""
