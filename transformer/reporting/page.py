"""Build a result's report page from its files."""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from transformer.core.files import atomic_write, read_json, write_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, open_task, with_labels
from transformer.core.validation import StageParams
from transformer.evaluation.headline import cautions, comparisons, metric_label, points, signed, value
from transformer.reporting.content import Marked, Page, Section, Table
from transformer.reporting.result import (
    Files,
    all_figures,
    conversions,
    duplicates,
    explained,
    facts,
    learning_curves,
    parameters,
    training_times,
)
from transformer.reporting.style import STEPS
from transformer.workflow.compare import SAME, Differences, Shown, differences, shown_params, tables
from transformer.workflow.dvc import require_outputs
from transformer.workflow.git import is_shallow
from transformer.workflow.pipeline import Pipeline
from transformer.workflow.recording import record_result
from transformer.workflow.results import WORKSPACE, Result, find_results, result_before, times_of
from transformer.workflow.run import current_origin, registered_name

_FOLDER = Path(__file__).parent / "page_template"
_UNBROKEN = 30  # characters of a word between two possible line breaks
_WORD = re.compile(rf"(\S{{{_UNBROKEN + 1},}})")
_LONGEST_CELL = 20_000  # characters: IMDB's longest review has 13,704, but a corpus may have a megabyte in a line


def render(page: Page) -> str:
    """Render the page as one HTML document. All its text is escaped."""
    # Inside a script element, only `</script` and `<!--` are special to the parser.
    attention = page.attention.replace("<", r"\u003c")
    return _template().render(page=page, attention=attention, steps=STEPS)


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    environment.filters["cell"] = _cell
    environment.globals["style"] = (_FOLDER / "style.css").read_text(encoding="utf-8")
    environment.globals["script"] = (_FOLDER / "script.js").read_text(encoding="utf-8")
    return environment.get_template("page.html")


def _cell(content: object, longest: int = _LONGEST_CELL) -> Markup:
    """Escape a cell, cut it if it is too long, and mark its marked parts."""
    if not isinstance(content, Marked):
        text = str(content)
        cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
        return _breakable(cut)
    parts = ((_breakable(text), is_marked) for text, is_marked in content.parts)
    return Markup("").join(Markup("<mark>{}</mark>").format(text) if is_marked else text for text, is_marked in parts)


def _breakable(text: str) -> Markup:
    """Escape text and allow line breaks inside very long words, such as addresses.

    Otherwise one such word makes its column as wide as itself and pushes the other columns out of sight.
    """
    words = _WORD.split(text)  # overlong words are at odd indices
    parts = [[word[at : at + _UNBROKEN] for at in range(0, len(word), _UNBROKEN)] for word in words[1::2]]
    broken = [Markup("<wbr>").join(pieces) for pieces in parts]
    return Markup("").join(part for pair in zip_longest(words[::2], broken, fillvalue="") for part in pair)


def _data_uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


_COMMIT = 10


class ReportParams(StageParams):
    """No parameters: the page shows the parameters of the result."""


def write_report(task: Task, params: ReportParams, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the page, the result's key to result.json, and the run to MLflow; return the page's size as a metric."""
    page = write_page(Path(), task.name)
    write_json(page.with_name("result.json"), {"key": _key(Path(), task.name)})
    runtime = params.runtime
    if runtime.tracking:
        observer.say(f"writing the run to MLflow, in at most {runtime.tracking_seconds:g} s")
        observer.say(record_result(task.name, runtime.tracking_seconds))
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
    family = declared.family.reporting()
    before = result_before(own)
    changes = None if before is None else differences(before, own, samples=_samples(pipeline))
    curves = learning_curves(files, family.curves(declared))
    times = times_of(own, "train")
    return Page(
        title=f"{task.capitalize()}: {registered_name(pipeline)}",
        headline=family.summary(files),
        compared=[*comparisons(files.evaluation), _against(before, changes), *cautions(files.evaluation)],
        chart=curves.pictures[0] if curves.pictures else None,
        examples=list(family.texts_with_answers(declared, files)),
        sections=[
            Section("Weaknesses", points=list(family.weaknesses(declared, files))),
            *family.sections(declared, files),
            *([replace(curves, pictures=curves.pictures[1:])] if curves.pictures else []),
            *conversions(files),
            _change(before, changes, own),
            *(each for each in [explained(files)] if each.pictures),
            *([training_times(times.points)] if times and times.points else []),
            duplicates(files),
            all_figures(files),
            Section("About this run", tables=[Table("Facts", ["fact", "value"], [*_origin(own), *facts(files)])]),
            parameters(shown_params(pipeline)),
        ],
        attention=files.attention(),
    )


def _samples(pipeline: Pipeline) -> int:
    return int(pipeline.section("evaluate")["bootstrap_samples"])


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


def _against(before: Result | None, changes: Differences | None) -> str:
    """Return the comparison of the main metric with the previous result's, in one line."""
    if before is None or changes is None:
        return "No earlier result of this task to compare with."
    score = next((each for each in changes.scores if each.comparable and not changes.other_corpus), None)
    if score is None:
        return f"The previous result ({before.name}) was not scored on the same texts in the same way."
    metric, ends = score.metric, ""
    name = f"The previous result ({before.name})"
    if score.first == score.second:
        return f"{name} has the same {metric_label(metric)} on {score.split}."
    if score.low is not None and score.high is not None:
        chance = "may be chance" if score.low <= 0 <= score.high else "beyond chance"
        ends = f", 95 % interval {signed(metric, score.low)} to {signed(metric, score.high)}: {chance}"
    return (
        f"{name} has {metric_label(metric)} {value(metric, score.first)} on {score.split},"
        f" this model {value(metric, score.second)} ({signed(metric, score.second - score.first)}"
        f"{points(metric)}{ends})."
    )


def _change(before: Result | None, changes: Differences | None, own: Result) -> Section:
    title = "Change from the previous result"
    if before is None or changes is None:
        shallow = is_shallow(own.root)
        more = " This clone has only a part of the history: `git fetch --unshallow` brings the rest." if shallow else ""
        return Section(title, f"No commit holds another result of this task.{more}")
    shown = list(tables(changes, before.name, "this result"))
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
