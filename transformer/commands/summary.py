"""The end of `make repro`: the main metrics, and where to find more."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tabulate import tabulate

from transformer.core.errors import UserError
from transformer.core.files import read_table
from transformer.core.params import read_params
from transformer.core.task import family_module, open_task
from transformer.registry import TASKS, tasks_of
from transformer.report.build import missing_pages, write_page
from transformer.results.chain import bundle_path
from transformer.results.differences import leaves
from transformer.results.find import WORKSPACE, Results, find_results, results_at
from transformer.results.headline import Split, main_first, metric_label, shortfall, splits, with_interval
from transformer.tracking.location import locate
from transformer.tracking.store import in_words
from transformer.tracking.sync import missing_rows, sync

_ROWS = 50  # of the predictions, among which the shortest text is the example


def print_summary(root: Path, task: str | None = None) -> None:
    """Print a table of test and validation metrics per task; write missing reports and MLflow rows. task: only this.

    Where the workspace has no complete result of a task, or files of another result, one line says so instead.
    """
    own = results_at(root, WORKSPACE, None)
    tasks = [each for each in own.chains if each in TASKS and task in (None, each)]
    for each in tasks:
        _print_task(each, own)
    for line in filter(None, (own.unrun(each) for each in tasks)):
        print(f"\n{line}")
    for each, line in own.partial.items():
        if task in (None, each):
            print(f"\n{line}")
    if not tasks and not any(task in (None, each) for each in own.partial):
        find_results(root, WORKSPACE, task)  # says in one line that there is none
    pages = [each for each in missing_pages(root) if each in tasks]
    for each in pages:
        _write_page(root, each)
    if (pages or missing_rows(root)) and _tracks(root):
        _sync(root)
    print("\nNext")
    print("  open reports/TASK/report.html       how good, how sure, where it fails, what changed")
    for each in tasks:
        options = family_module(open_task(each), "options")
        several = len(tasks_of(open_task(each).family)) > 1
        model = f"--model {bundle_path(each)} " if several else ""
        command, asked = options.example(each, leaves(own.chains[each].params), _shortest(root, each))
        print(f"  transformer {command} {model}{shlex.quote(asked) if asked else 'TEXT'}")
    for each in tasks[-1:]:
        if epochs := leaves(own.chains[each].params).get(f"{each}.train.epochs"):
            run = f"dvc exp run -S {each}.train.epochs={epochs + 1} report@{each}"
            print(f"  {run}    change a parameter; transformer compare HEAD workspace")
    print("  make serve                          an exported model by HTTP, with MLflow's server")
    print(f"  {_all_results(root)}")


def _all_results(root: Path) -> str:
    """Where all results are side by side. An address that is no store is told by tracking: results do not need one."""
    with suppress(UserError):
        if (store := locate(root)).is_server:
            return f"{store}    all results side by side, in MLflow"
    return "make ui                             all results side by side, in MLflow at http://127.0.0.1:5000"


def _shortest(root: Path, task: str) -> str:
    """A short text of the corpus; empty if there are no predictions."""
    try:
        rows = islice(read_table(root / "reports" / task / "predictions.tsv"), _ROWS)
        return min((list(row.values())[1] for row in rows), key=len, default="")
    except UserError:
        return ""


def _tracks(root: Path) -> bool:
    """Whether `runtime.tracking` of params.yaml is on."""
    try:
        runtime = read_params(root / "params.yaml").get("runtime")
    except UserError:  # the results are there all the same
        return True
    return not (isinstance(runtime, Mapping) and runtime.get("tracking") is False)


def _sync(root: Path) -> None:
    try:
        sync(root, echo=lambda line: None)  # notices about older results' rows would be noise here
    except Exception as error:  # the boundary: results do not depend on the tracking store
        print(f"tracking: {in_words(error)}; run `transformer sync` later")


def _write_page(root: Path, task: str) -> None:
    try:
        write_page(root, task)
    except UserError as error:
        print(f"{task}: report not written: {error}")


def _print_task(task: str, own: Results) -> None:
    try:
        figures = own.evaluation(task)
    except UserError as error:
        print(f"\n{task}: {error}")
        return
    print()
    if behind := shortfall(figures):
        print(f"{task}: {behind}")
    print(scores_table(task, figures))


def scores_table(task: str, evaluation: Mapping[str, Split]) -> str:
    """A table of the main metrics of every split in evaluation.json."""
    headline = family_module(open_task(task), "shown").HEADLINE
    known = [name for name in headline if any(name in evaluation[split] for split in splits(evaluation))]
    names = main_first(known, evaluation)
    rows = [[split, *(with_interval(name, evaluation[split]) for name in names)] for split in splits(evaluation)]
    header = [f"{task}, 95 % intervals", *map(metric_label, names)]
    table: str = tabulate(rows, headers=header, tablefmt="simple", disable_numparse=True)
    return table
