"""The end of `make repro`: the main figures, and where to look."""

from pathlib import Path
from typing import Any

from tabulate import tabulate

from transformer.files import read_json
from transformer.headline import metric_label, shortfall, splits, with_interval
from transformer.reporting.page.build import missing_pages, write_page
from transformer.tasks import TASKS, headline_figures
from transformer.tracking.store import in_words
from transformer.tracking.sync import missing_rows, sync


def print_summary(root: Path) -> None:
    """Print a table of test and validation figures a task; write reports and MLflow rows that are missing."""
    for task in TASKS:
        path = root / "reports" / task / "evaluation.json"
        if path.is_file():
            _print_task(task, read_json(path))
    pages = missing_pages(root)
    for task in pages:
        write_page(root, task)
    if pages or missing_rows(root):
        _sync(root)
    print("\nNext")
    print("  open reports/TASK/report.html       how good, how sure, where it fails, what changed")
    print("  transformer translate 'Ein Mann'    use a model; transformer classify, transformer attention")
    print("  dvc exp run -S translation.train.epochs=4    change a parameter; transformer compare HEAD workspace")
    print("  make ui                             every result beside the others, in MLflow at http://127.0.0.1:5000")


def _sync(root: Path) -> None:
    try:
        sync(root, echo=print)
    except Exception as error:  # the boundary: a tracking store that cannot be reached makes no result worse
        print(f"tracking: {in_words(error)}; run `transformer sync` later")


def _print_task(task: str, figures: dict[str, dict[str, Any]]) -> None:
    names = headline_figures(task)
    rows = [[split, *(with_interval(name, figures[split]) for name in names)] for split in splits(figures)]
    header = [f"{task}, 95 % intervals", *map(metric_label, names)]
    print()
    if behind := shortfall(figures):
        print(f"{task}: {behind}")
    print(tabulate(rows, headers=header, tablefmt="simple", disable_numparse=True))
