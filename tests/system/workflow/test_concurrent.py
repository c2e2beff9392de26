"""Two workflows at the same time, in one repository and in two worktrees."""

import subprocess
from pathlib import Path

from ruamel.yaml import YAML

from tests.conftest import Clone, make_clone
from tests.kit import TASKS
from tests.system.tracking.runs import client_of, experiment

BUSY = ("is busy, it is being blocked by", "Unable to acquire lock")


def refused(process: subprocess.Popen[str]) -> bool:
    """Whether DVC refused the process as busy, the only failure allowed."""
    printed, _ = process.communicate(timeout=500)
    assert process.returncode == 0 or any(reason in printed for reason in BUSY), printed[-3000:]
    return process.returncode != 0


def assert_once_each(uri: str | Path) -> None:
    """One run per task, which is complete; stages may have run in either place, or in both."""
    client = client_of(uri)
    runs = {task: client.search_runs([experiment(client, task)]) for task in TASKS}
    assert {task: [run.info.status for run in found] for task, found in runs.items()} == {
        task: ["FINISHED"] for task in TASKS
    }


def test_both_tasks_at_once(workflow: Clone, tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
    both = [clone.start("dvc", "repro", f"report@{task}") for task in TASKS]
    for process in both:
        refused(process)
    clone.repro()
    here, there = (YAML(typ="safe").load(each.root / "dvc.lock") for each in (clone, workflow))
    assert here == there  # not byte by byte: stages are in the order in which they ended
    clone.run("transformer", "sync")
    assert_once_each(clone.root)


def test_two_worktrees_with_one_store(workflow: Clone, tmp_path: Path) -> None:
    """Both write the same results to the same database, which stays intact and has each run once."""
    store = f"sqlite:///{tmp_path / 'shared.db'}"
    here = make_clone(tmp_path / "clone", MLFLOW_TRACKING_URI=store)
    here.run("git", "worktree", "add", "-q", str(tmp_path / "other"))
    there = Clone(tmp_path / "other", here.environment)
    both = [clone.start("dvc", "repro") for clone in (here, there)]
    assert not any(refused(process) for process in both)
    for clone in (here, there):
        assert (clone.root / "dvc.lock").read_bytes() == (workflow.root / "dvc.lock").read_bytes()
        assert clone.repro() == []
    syncing = [subprocess.Popen(["transformer", "sync"], cwd=c.root, env=c.environment) for c in (here, there)]
    assert [process.wait(timeout=300) for process in syncing] == [0, 0]
    assert_once_each(store)
