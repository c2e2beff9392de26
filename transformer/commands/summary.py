"""Summary at the end of `make repro`: the main metrics, and where to find more."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tabulate import tabulate

from transformer.core.errors import UserError, printable
from transformer.core.files import read_table
from transformer.core.params import leaves
from transformer.core.task import open_task, task_names, tasks_of
from transformer.evaluation.headline import Split, main_first, metric_label, shortfall, splits, value
from transformer.workflow.mlflow import is_server, store_uri, without_password
from transformer.workflow.pipeline import bundle_path
from transformer.workflow.results import WORKSPACE, Result, find_results, results_at

WIDTH = 80
"""Columns of a terminal."""
_ROWS = 50  # predictions, among which the shortest text is the example


def print_summary(root: Path, task: str | None = None) -> None:
    """Print a table of test and validation metrics per task; task: only this one.

    Where the workspace has no complete result of a task, or files of another result, one line says so instead.
    """
    found = results_at(root, WORKSPACE, None)
    results = {each: result for each, result in found.results.items() if each in task_names() and task in (None, each)}
    partial = [line for each, line in found.partial.items() if task in (None, each)]
    if not results and not partial:
        find_results(root, WORKSPACE, task)  # says in one line that there is none
    for result in results.values():
        _print_result(result)
    for line in (*filter(None, (result.warning() for result in results.values())), *partial):
        print(f"\n{printable(line)}")
    print("\nNext")
    print("  make serve                          a page to try the model")
    print("  open reports/TASK/report.html       how good, how sure, where it fails")
    for each, result in results.items():
        params = leaves(result.pipeline.params)
        family = open_task(each).family
        several = len(tasks_of(family.name)) > 1
        model = f"--model {bundle_path(each)} " if several else ""
        command, asked = family.command_line().example(each, params, _shortest(root, each))
        print(printable(f"  transformer {command} {model}{shlex.quote(asked) if asked else 'TEXT'}"))
    for each in [*results][-1:]:
        if epochs := results[each].pipeline.section("train").get("epochs"):
            print(f"  dvc exp run -S {each}.train.epochs={epochs + 1} report@{each}")
    print("  transformer compare HEAD workspace  what that changed, and if it is noise")
    print(f"  {_all_results(root)}")


def _all_results(root: Path) -> str:
    """Say where to compare all results. Tracking reports an invalid store address: results do not need a store."""
    with suppress(UserError):
        if is_server(uri := store_uri(root)):
            return f"{without_password(uri)}    all results side by side, in MLflow"
    return "make ui                             all results side by side, in MLflow"


def _shortest(root: Path, task: str) -> str:
    """Return a short text of the corpus; empty if there are no predictions."""
    try:
        rows = islice(read_table(root / "reports" / task / "predictions.tsv"), _ROWS)
        return min((list(row.values())[1] for row in rows), key=len, default="")
    except UserError:
        return ""


def _print_result(result: Result) -> None:
    try:
        evaluation = result.evaluation()
    except UserError as error:
        print(f"\n{result.task}: {error}")
        return
    print()
    if behind := shortfall(evaluation):
        print(printable(f"{result.task}: {behind}"))
    print(scores_table(result.task, evaluation))


def scores_table(task: str, evaluation: Mapping[str, Split]) -> str:
    """Tabulate the main metrics of every split in evaluation.json: splits in rows, in columns if that is too wide."""
    headline, names = open_task(task).family.headline, splits(evaluation)
    known = main_first([name for name in headline if any(name in evaluation[split] for split in names)], evaluation)
    rows = [[printable(split), *(_cell(name, evaluation[split]) for name in known)] for split in names]
    rows.insert(0, [f"{task}, 95 % intervals", *(metric_label(name, evaluation) for name in known)])
    widest = max(map(len, _tabulated(rows).splitlines()))
    return _tabulated(rows if widest <= WIDTH else list(zip(*rows, strict=True)))


def _tabulated(rows: Sequence[Sequence[str]]) -> str:
    table: str = tabulate(rows[1:], headers=rows[0], tablefmt="simple", disable_numparse=True)
    return table


def _cell(name: str, split: Split) -> str:
    if name not in split:
        return ""
    ends = [
        value(name, split[f"{name}_{end}"]).removesuffix(" %") for end in ("low", "high") if f"{name}_{end}" in split
    ]
    return value(name, split[name]) + (f" [{', '.join(ends)}]" if ends else "")
