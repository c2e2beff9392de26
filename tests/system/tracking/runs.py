"""MLflow's content after a pipeline that DVC really runs."""

import re
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from tests.system.tracking.conftest import run_in

Shown = dict[str, Any]


def edit(root: Path, old: str, new: str, name: str = "params.yaml") -> None:
    path = root / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


def commit(root: Path, message: str) -> str:
    run_in(root, "git", "add", "--all")
    run_in(root, "git", "commit", "--quiet", "--allow-empty", "--message", message)
    return run_in(root, "git", "rev-parse", "HEAD").strip()


def sync(root: Path, **env: str) -> str:
    return run_in(root, "python", "-m", "transformer", "sync", env=env)


def client_of(uri: str | Path) -> MlflowClient:
    """uri: a server's, or the folder with mlflow.db."""
    address = f"sqlite:///{uri}/mlflow.db" if isinstance(uri, Path) else uri
    return MlflowClient(address, address)


def experiment(client: MlflowClient, task: str) -> str:
    found = client.get_experiment_by_name(task)
    assert found is not None
    return str(found.experiment_id)


def shown(uri: str | Path) -> dict[str, Shown]:
    """What a person sees of each result, by key."""
    client = client_of(uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    runs = [*client.search_runs(experiments, "tags.key LIKE '%'")]
    found = {run.data.tags["key"]: _shown(client, run) for run in runs}
    assert len(found) == len(runs), "a result has two runs"
    return found


def _shown(client: MlflowClient, run: Any) -> Shown:
    own = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    history = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    (output,) = run.outputs.model_outputs
    versions = client.search_model_versions(f"run_id = '{run.info.run_id}'")
    return {
        "run": run.info.run_id,
        "name": run.info.run_name,
        "status": run.info.status,
        "seconds": (run.info.end_time - run.info.start_time) / 1000,
        "params": run.data.params,
        "tags": {name: value.replace(own, "#RUN") for name, value in run.data.tags.items()},
        "curves": {name: [(p.step, p.value) for p in points] for name, points in history.items()},
        "inputs": sorted((i.dataset.name, i.dataset.digest, i.tags[0].value) for i in run.inputs.dataset_inputs),
        "files": sorted(_files(client.list_artifacts, run.info.run_id)),
        "model": sorted(_files(client.list_logged_model_artifacts, output.model_id)),
        "versions": [(v.name, v.tags["value"], client.get_registered_model(v.name).aliases) for v in versions],
    }


def _files(listed: Any, where: str, folder: str | None = None) -> list[str]:
    found = []
    for each in listed(where, folder):
        if each.is_dir and not re.search(r"artifacts/code|^code", each.path):
            found += _files(listed, where, each.path)
        else:
            found.append(each.path)
    return found


def of_task(runs: dict[str, Shown], task: str) -> list[Shown]:
    return [run for run in runs.values() if run["tags"]["task"] == task]
