"""report: writes a page about the result, compared with the previous one."""

from pathlib import Path

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import ReportCode


def report(stage: Stage[ReportCode]) -> dict[str, float]:
    """reports/TASK, models/TASK/bundle, dvc.lock and git's history -> reports/TASK/report.html."""
    return stage.code.run(stage.task, stage.params, root=Path(), observer=stage.observer)


if __name__ == "__main__":
    main("report", report)
