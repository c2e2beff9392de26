"""The runs of a clone's results."""

import json
from typing import Any

from tests.conftest import Clone

ROWS = """
import json
from pathlib import Path
from tests.kit import TASKS
from transformer.workflow.mlflow import open_store
rows = []
for task in TASKS:
    store = open_store(Path.cwd(), task)
    for run in store.client.search_runs([store.experiment_id], "tags.key LIKE '%'"):
        client = store.client
        curves = {name: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]
                  for name in run.data.metrics}
        rows.append({
            "task": task, "name": run.info.run_name, "params": run.data.params, "curves": curves,
            "tags": {k: v for k, v in run.data.tags.items() if not k.startswith("mlflow.")},
            "note": run.data.tags["mlflow.note.content"].splitlines()[0],
            "files": sorted(f.path for f in client.list_artifacts(run.info.run_id)),
            "inputs": sorted((i.dataset.name, i.dataset.digest) for i in run.inputs.dataset_inputs),
        })
print(json.dumps(sorted(rows, key=lambda row: (row["task"], row["tags"]["key"]))))
"""


def rows(clone: Clone) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(clone.run("python", "-c", ROWS).stdout)
    return result
