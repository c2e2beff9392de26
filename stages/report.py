"""report: a result as one page, beside the result before it."""

from pathlib import Path

from transformer.core.stage import Stage, main


def report(stage: Stage) -> None:
    """reports/TASK, models/TASK/bundle, dvc.lock and git's history -> reports/TASK/report.html."""
    stage.run(root=Path(), task=stage.reports.name)


if __name__ == "__main__":
    main("report", report)
