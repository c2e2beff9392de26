"""report: builds a result's page from its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from transformer.core.files import atomic_write
from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task, family_module, open_task, with_labels
from transformer.report.content import Page, Section, Table
from transformer.report.render import render
from transformer.report.result import (
    Result,
    all_figures,
    conversions,
    duplicates,
    explained,
    facts,
    parameters,
    training_times,
)
from transformer.results.chain import VIEWS, Chain
from transformer.results.differences import differences, leaves, shown_params
from transformer.results.find import WORKSPACE, Results, find_results, results_at, results_before
from transformer.results.git import is_shallow
from transformer.results.headline import shortfall
from transformer.results.naming import registered_name
from transformer.results.origin import origin_of, uncommitted_code
from transformer.results.output import SAME, Shown, tables
from transformer.results.place import is_page_of, made_from, page_path
from transformer.results.times import times_of
from transformer.results.workspace import require_outputs

_COMMIT = 10


class PageCode(Protocol):
    """The interface of families/F/report.py: the family's part of a page."""

    def summary(self, result: Result) -> str:
        """How good the result is, in one line."""

    def weaknesses(self, task: Task, result: Result) -> Iterator[str]:
        """Where it fails, one line each."""

    def sections(self, task: Task, result: Result) -> Iterator[Section]:
        """The sections of the page, the most informative first."""


class ReportParams(StageParams):
    """None: the page shows the parameters of the result."""


def write_report(task: Task, params: ReportParams, *, root: Path, observer: Observer) -> dict[str, float]:
    """As `write_page`; returns the page's size as a metric."""
    return {"kilobytes": round(write_page(root, task.name).stat().st_size / 1000)}


def write_page(root: Path, task: str) -> Path:
    """Write `reports/TASK/report.html` for the result in the workspace, compared with the last committed one before it.

    Raises UserError when dvc.lock has no consistent result, or the workspace's files are not those of the result.
    """
    page, target = render(_page(root, task)), page_path(root, task)
    with atomic_write(target) as stream:
        stream.write(page.encode())
    return target


def missing_pages(root: Path) -> list[str]:
    """The tasks whose result in dvc.lock has no up-to-date page in the workspace, as in a fresh clone."""
    return [task for task, chain in results_at(root, WORKSPACE, None).chains.items() if not is_page_of(root, chain)]


def _page(root: Path, task: str) -> Page:
    own = find_results(root, WORKSPACE, task)
    chain = own.chains[task]
    result = Result(root, task, views=frozenset(view.name for view in chain.views))
    require_outputs(root, _shown(chain))
    declared = with_labels(open_task(task), root / "data" / task / "corpus")
    code: PageCode = family_module(declared, "report")
    before = results_before(root, chain)
    return Page(
        title=f"{task.capitalize()}: {registered_name(chain)}",
        row_key=chain.row_key(),
        made_from=made_from(root, chain),
        headline=". ".join(filter(None, (code.summary(result), shortfall(result.evaluation)))),
        weaknesses=list(code.weaknesses(declared, result)),
        facts=[*_origin(root, chain), *facts(result)],
        sections=[*code.sections(declared, result), *conversions(result), _change(task, before, own)],
        folded=[
            *(each for each in [explained(result)] if each.pictures),
            *([training_times(points)] if (points := times_of(root, chain)) else []),
            duplicates(result),
            all_figures(result),
            parameters(shown_params(chain, VIEWS)),
        ],
        attention=result.attention(),
    )


def _shown(chain: Chain) -> dict[str, str]:
    """The outputs that a page is made from, with their MD5."""
    folders = (f"reports/{chain.task}/", f"data/{chain.task}/corpus")
    return {path: md5 for path, md5 in chain.outs.items() if path.startswith(folders)}


def _origin(root: Path, chain: Chain) -> Iterator[tuple[str, str]]:
    origin = origin_of(root, chain)
    if origin.experiment:
        yield "experiment", origin.experiment
    changed = uncommitted_code(root, chain, origin.commit)
    commit = origin.commit[:_COMMIT] if origin.commit else "none"
    yield "commit", f"{commit}, with changes of the code that were not committed" if changed else commit
    yield "result", chain.row_key()


def _change(task: str, before: Results | None, own: Results) -> Section:
    title = "Change from the previous result"
    if before is None:
        shallow = is_shallow(own.root)
        more = " This clone has only a part of the history: `git fetch --unshallow` brings the rest." if shallow else ""
        return Section(title, f"No commit holds another result of this task.{more}")
    found = differences(task, before, own, samples=_samples(own, task))
    shown = list(tables(found, before.name, "this result"))
    text = f"The previous result is the one that commit {before.name} holds."
    text += f" {shown[0].note}" if shown[0].note else ""
    text += in_common(shown)
    # Readers want the change of the scores first; the list of modules stays folded.
    rows = [Table(each.title, each.header, each.rows, folded=each.title == "Code") for each in shown if each.rows]
    return Section(title, text, tables=rows)


def in_common(shown: Sequence[Shown]) -> str:
    """What two results share, in a sentence that continues a paragraph."""
    same = [table.title.lower() for table in shown if table.note == SAME]
    return f" The same in both: {', '.join(same)}." if same else ""


def _samples(own: Results, task: str) -> int:
    return int(leaves(own.chains[task].params)[f"{task}.evaluate.bootstrap_samples"])
