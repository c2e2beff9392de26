"""Print differences as plain text or Markdown."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tabulate import tabulate

from transformer.evaluation.headline import value
from transformer.workflow.differences import Differences, Score

_CODE_SHOWN = 20
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
    for table in tables(found, first, second):
        yield from _table(table, markdown)


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
    # An unescaped pipe would end the cell of a Markdown table.
    cells = [[cell.replace("|", "\\|") if markdown else cell for cell in row] for row in (table.header, *table.rows)]
    style = "pipe" if markdown else "simple"
    yield tabulate(cells[1:], headers=cells[0], tablefmt=style, disable_numparse=True)
