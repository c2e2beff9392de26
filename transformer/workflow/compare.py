"""Differences between two results of one task."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tabulate import tabulate

from transformer.core.code import changes
from transformer.core.errors import in_markdown, printable
from transformer.core.params import leaves
from transformer.core.task import Task, open_task
from transformer.evaluation.bootstrap import interval, p_value
from transformer.evaluation.headline import main_first, measured, value
from transformer.workflow.pipeline import DATA_STAGES, OPTIONAL, Pipeline
from transformer.workflow.results import Result, Row

ABSENT = "-"
_ALPHA = 0.05  # the complement of the intervals' 95 %


@dataclass(frozen=True)
class Score:
    """One metric of one split."""

    split: str
    metric: str
    first: float
    second: float
    low: float | None = None
    """Lower bound of the 95 % interval of `second - first`; None if the predictions are not available."""
    high: float | None = None
    p: float | None = None
    comparable: bool = True
    """True if both results scored the same texts in the same way, as far as is known."""

    @property
    def at_the_edge(self) -> bool:
        """True if the interval and the p value disagree at the 0.05 level."""
        if self.low is None or self.high is None or self.p is None:
            return False
        return (self.low <= 0 <= self.high) == (self.p < _ALPHA)


@dataclass(frozen=True)
class Differences:
    """Changes from the first result to the second."""

    task: str
    params: list[tuple[str, str, str]]
    """Dotted name, first and second value."""
    data: list[tuple[str, str, str]]
    """Path, MD5 in the first result and in the second: the data stages' outputs, and external inputs of later
    stages, such as a language model."""
    code: list[str]
    """Changed, added and removed modules of the stages."""
    scores: list[Score]
    without_answers: list[str]
    """Results whose predictions are in neither DVC's cache nor its remote; then no score has an interval."""
    baselines: Sequence[Score] = ()
    """Scores of the two results' linear baselines, where they differ: leads over them are not comparable."""

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not (self.params or self.data or self.code) and all(each.first == each.second for each in self.scores)

    @property
    def other_corpus(self) -> bool:
        """True if the results are on different corpora; only scores on the same texts can be compared."""
        return any(path == f"data/{self.task}/corpus" for path, _, _ in self.data)


def differences(first: Result, second: Result, *, samples: int) -> Differences:
    """Compare two results of one task; samples: the number of paired bootstrap samples."""
    one, two = first.pipeline, second.pipeline
    lacking = [name for name in OPTIONAL if not (name in one.stages and name in two.stages)]
    answers = [result.predictions() if samples else {} for result in (first, second)]
    return Differences(
        task=first.task,
        params=list(_changed(*(shown_params(pipeline, lacking) for pipeline in (one, two)))),
        data=[
            *_changed(_data(one), _data(two)),
            *(each for each in _changed(_given(one), _given(two)) if ABSENT not in each),
        ],
        code=_changed_code(first, second),
        scores=list(_scores(first, second, answers, samples)),
        without_answers=[r.name for r, rows in zip((first, second), answers, strict=True) if samples and not rows],
        baselines=list(_baselines(first, second)),
    )


def _changed(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*first, *second}):
        if name not in first or name not in second or first[name] != second[name]:
            yield name, _shown(first, name), _shown(second, name)


def _changed_code(first: Result, second: Result) -> list[str]:
    """Return the modules and libraries that differ; the path of a fingerprint that is not available."""
    one, two = first.code(), second.code()
    paths = [path for path, _, _ in _changed(first.pipeline.code, second.pipeline.code)]
    return sorted({name for path in paths for name in (changes(one.get(path, {}), two.get(path, {})) or [path])})


def _shown(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return ABSENT
    return values[name] if isinstance(values[name], str) else json.dumps(values[name])


def shown_params(pipeline: Pipeline, lacking: Collection[str] = ()) -> dict[str, Any]:
    """Return a pipeline's parameters by dotted name, without those of the stages in `lacking`."""
    left = Pipeline(pipeline.task, {name: each for name, each in pipeline.stages.items() if name not in lacking})
    return leaves(left.params)


def _data(pipeline: Pipeline) -> dict[str, str]:
    return {path: md5 for name in DATA_STAGES for path, md5 in pipeline.stages[name].outs.items()}


def _given(pipeline: Pipeline) -> dict[str, str]:
    """Return external inputs of the stages below the data: neither code nor written by a stage of the pipeline.

    What only one result reads is left out later: a parameter says that.
    """
    below = [stage for name, stage in pipeline.stages.items() if name not in (*DATA_STAGES, *OPTIONAL)]
    read = {path: md5 for stage in below for path, md5 in stage.deps.items()}
    return {path: md5 for path, md5 in read.items() if path not in {*pipeline.outs, *pipeline.code}}


def _scores(first: Result, second: Result, answers: Sequence[dict[str, list[Row]]], samples: int) -> Iterator[Score]:
    """Yield the headline metrics of the splits in both results; those computed from predictions have intervals."""
    one, two, task = first.metrics(), second.metrics(), open_task(first.task)
    evaluations = first.evaluation(), second.evaluation()
    compare = task.family.reporting()
    one_direction = languages(first.pipeline) == languages(second.pipeline)
    for split in (split for split in one if split in two):
        rows = [each[split] for each in answers if split in each]
        same_texts = one_direction and (len(rows) < 2 or compare.texts(rows[0]) == compare.texts(rows[1]))
        paired = _paired(task, split, rows, samples) if len(rows) == 2 and same_texts else {}
        found = {}
        for metric in dict.fromkeys((*paired, *task.family.headline)):
            recorded = {measured(metric, each) for each in evaluations} - {""}
            alike = same_texts and len(recorded) <= 1
            if metric in paired and (_agrees(paired[metric], one[split], two[split]) if alike else compare.scored_anew):
                found[metric] = paired[metric]
            elif metric in one[split] and metric in two[split]:
                found[metric] = Score(split, metric, one[split][metric], two[split][metric], comparable=alike)
        order = sorted(found, key=lambda metric: metric in paired)
        yield from (found[metric] for metric in main_first(order, one))


def languages(pipeline: Pipeline) -> list[str]:
    """Return the codes of the source and target language; empty for a task other than translation."""
    section = pipeline.section("tokenize")
    return [str(section[side]) for side in ("source", "target") if side in section]


def _agrees(score: Score, one: Mapping[str, float], two: Mapping[str, float]) -> bool:
    """True if a metric computed from predictions equals `evaluate`'s, which knows all labels, also absent ones."""
    recorded = (score.first, one.get(score.metric)), (score.second, two.get(score.metric))
    return all(wrote is None or math.isclose(own, wrote, rel_tol=1e-3, abs_tol=1e-3) for own, wrote in recorded)


def _baselines(first: Result, second: Result) -> Iterator[Score]:
    """Yield the main metric of the linear baselines where the two results differ."""
    one, two = first.metrics(), second.metrics()
    names = [f"linear_{metric}" for metric in open_task(first.task).family.headline]
    for split in (split for split in one if split in two):
        name = next((name for name in names if name in one[split] and name in two[split]), None)
        if name and one[split][name] != two[split][name]:
            yield Score(split, name, one[split][name], two[split][name])


def _paired(task: Task, split: str, answers: Sequence[list[Row]], samples: int) -> dict[str, Score]:
    """Compute metrics by name from two systems' predictions for the same texts."""
    compare = task.family.reporting()
    found = {}
    one, two = compare.scored(task, answers, samples)
    for metric in (name for name in one if name in two):
        (score, drawn), (other, others) = one[metric], two[metric]
        low, high = interval(others - drawn) or (None, None)
        p = p_value(other - score, others - drawn, compare.differing(metric, *answers))
        found[metric] = Score(split, metric, score, other, low, high, p)
    return found


_CODE_SHOWN = 20
_WIDTHS = (44, 16, 16)  # of a parameter and its values in a terminal of 80 columns
_MD5 = 8
SAME = "the same"
"""Note of a table without differences."""
_AT_THE_EDGE = (
    "the interval and p disagree about 0.05. Both are estimates, and this difference is at their edge: decide with more"
    " test rows or more seeds."
)


def lines(found: Differences, first: str, second: str, *, markdown: bool) -> Iterator[str]:
    """Yield the lines of a comparison; first, second: the results' names."""
    yield from _heading(found.task, "##", markdown)
    if found.same:
        yield "The same parameters, data, code and scores."
        return
    scores, *others = tables(found, first, second)
    for table in (scores if markdown else _narrow(scores, found.scores), *others):
        yield from _table(table, markdown)


def _narrow(table: "Shown", scores: Sequence[Score]) -> "Shown":
    """Return the table of scores for 80 columns: no p, but whether a difference is beyond chance."""
    rows = []
    for score, (split, metric, first, second, difference, *_) in zip(scores, table.rows, strict=True):
        known = difference and score.low is not None and score.high is not None
        ends = f" [{score.low:+.3g}, {score.high:+.3g}]" if known else ""
        verdict = ("clear" if (score.low or 0) > 0 or (score.high or 0) < 0 else "noise") if known else ""
        rows.append((f"{split} {metric}", first, second, difference + ends, verdict))
    return Shown(table.title, ("", *table.header[2:4], "difference, 95 %", ""), rows, table.note)


class Shown(NamedTuple):
    """A table of differences."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    """Text above the rows, or in place of missing rows."""


def tables(found: Differences, first: str, second: str) -> Iterator[Shown]:
    """Yield the differences of scores, parameters, data and code; first, second: the results' names."""
    scores = [_score(score, comparable=score.comparable and not found.other_corpus) for score in found.scores]
    missing = " and ".join(found.without_answers)
    notes = [f"No intervals: DVC has no predictions of {missing} here (`dvc pull` them)."] if missing else []
    if found.other_corpus:
        notes.insert(0, "The results are of different corpora: scores compare only where there is an interval.")
    elif other := ", ".join(f"{score.split} {score.metric}" for score in found.scores if not score.comparable):
        notes.append(f"{other}: no difference, as the results scored different texts or scored them differently.")
    if edge := ", ".join(f"{score.split} {score.metric}" for score in found.scores if score.at_the_edge):
        notes.append(f"{edge}: {_AT_THE_EDGE}")
    if found.baselines and not found.other_corpus:
        notes.append(_other_baselines(found))
    header = ("split", "metric", first, second, "difference", "95 % interval", "p")
    yield Shown("Scores", header, scores, " ".join(notes))
    yield Shown("Parameters", ("parameter", first, second), found.params, _note(found.params))
    data = [(path, one[:_MD5], two[:_MD5]) for path, one, two in found.data]
    yield Shown("Data", ("path", first, second), data, _note(data))
    code = [(path,) for path in found.code[:_CODE_SHOWN]]
    if len(found.code) > _CODE_SHOWN:
        code.append((f"and {len(found.code) - _CODE_SHOWN} more",))
    yield Shown("Code", ("changed",), code, _note(code))


def _other_baselines(found: Differences) -> str:
    """Describe the scores of the two results' linear baselines in a sentence."""
    named = [(each, each.metric.removeprefix("linear_")) for each in found.baselines]
    pairs = ", ".join(f"{each.split} {value(name, each.first)} and {value(name, each.second)}" for each, name in named)
    return f"The linear baselines differ ({pairs}): leads over them do not compare."


def _note(rows: Sequence[object]) -> str:
    return "" if rows else SAME


def _score(score: Score, *, comparable: bool) -> tuple[str, ...]:
    """comparable: True if the texts and the scoring are the same, as they are if there is an interval."""
    difference = f"{score.second - score.first:+.4g}" if comparable or score.low is not None else ""
    ends = (score.low, score.high)
    between = f"{ends[0]:+.4g} to {ends[1]:+.4g}" if ends[0] is not None and ends[1] is not None else ""
    p = "" if score.p is None else f"{score.p:.3g}"
    return score.split, score.metric, f"{score.first:.5g}", f"{score.second:.5g}", difference, between, p


def _heading(text: str, marks: str, markdown: bool) -> Iterator[str]:
    yield f"{marks} {text}" if markdown else text.upper() if marks == "##" else text
    if markdown:
        yield ""


def _table(table: Shown, markdown: bool) -> Iterator[str]:
    yield ""
    if not table.rows:
        yield f"**{table.title}:** {table.note}" if markdown else f"{table.title}: {table.note}"
        return
    yield from _heading(table.title, "###", markdown)
    if table.note:
        yield table.note
        yield ""
    cells = [[*map(in_markdown if markdown else printable, row)] for row in (table.header, *table.rows)]
    style = "pipe" if markdown else "simple"
    widths = None if markdown or table.title != "Parameters" else _WIDTHS
    yield tabulate(cells[1:], headers=cells[0], tablefmt=style, disable_numparse=True, maxcolwidths=widths)
