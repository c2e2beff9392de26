"""The end of `make repro`: the main figures, and where to look."""

from pathlib import Path
from typing import Any

from transformer.files import read_json
from transformer.tasks import TASKS, headline_figures
from transformer.tracking.sync import missing_rows, sync


def print_summary(root: Path) -> None:
    """Print a table of test and validation figures a task; write MLflow rows that are missing."""
    for task in TASKS:
        path = root / "reports" / task / "evaluation.json"
        if path.is_file():
            _print_task(task, read_json(path))
    if missing_rows(root):
        sync(root, echo=print)
    print("\nWhere to look")
    print("  reports/             figures, predictions and plots (dvc metrics show, dvc plots show)")
    print("  models/TASK/bundle/  the models: transformer translate 'Ein Mann ...', transformer classify 'A film ...'")
    print("  make ui              every result beside the others, in MLflow at http://127.0.0.1:5000")


def _print_task(task: str, figures: dict[str, dict[str, Any]]) -> None:
    names = headline_figures(task)
    print(f"\n{task:<20}" + "".join(f"{name:>12}" for name in names))
    for split, values in figures.items():
        if split != "signatures":
            print(f"  {split:<18}" + "".join(f"{values.get(name, float('nan')):>12.4g}" for name in names))
