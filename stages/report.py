"""report: writes a page about the result, compared with the previous one, and its run in MLflow.

reports/TASK, models/TASK, dvc.lock and git's history -> reports/TASK/report.html, result.json; MLflow's run
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("report")
