"""report: writes a page about the result, compared with the previous one, and its run in MLflow."""

from pathlib import Path

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import ReportCode
from transformer.workflow.recording import record_result


def report(stage: Stage[ReportCode]) -> dict[str, float]:
    """reports/TASK, models/TASK, dvc.lock and git's history -> reports/TASK/report.html, result.json; MLflow's run."""
    metrics = stage.code.run(stage.task, stage.params, root=Path(), observer=stage.observer)
    runtime = stage.params.runtime
    if runtime.tracking:
        stage.observer.say(f"writing the run to MLflow, in at most {runtime.tracking_seconds:g} s")
        stage.observer.say(record_result(stage.task.name, runtime.tracking_seconds))
    return metrics


if __name__ == "__main__":
    main("report", report)
