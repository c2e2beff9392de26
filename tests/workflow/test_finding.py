"""Which result a name means, and what is said where there is none."""

import json
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.kit import git
from tests.workflow.comparing import GOOD, write_result
from transformer.core.errors import UserError
from transformer.workflow.dvc import content_md5
from transformer.workflow.results import Result, _workspace_changes, find_results, result_before


def found(root: Path, name: str) -> Result:
    return find_results(root, name).results["sentiment"]


def test_results_are_found_by_commit_and_by_mlflows_run(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD").strip()
    key = found(repository, "main").pipeline.key
    for name in ("main", "HEAD", key, f"learning_rate=0.001 {key[:8]}"):
        assert found(repository, name).commit == commit


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "not a commit, experiment or MLflow run"), ("-x", "not a commit"), ("", "not a commit")],
)
def test_what_cannot_be_found_is_said(repository: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_results(repository, name)


def test_a_branch_comes_before_an_experiment_of_the_same_name(repository: Path) -> None:
    """As `dvc exp branch NAME NAME` leaves them: DVC's own commands take the branch, which may have gone on."""
    first = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "update-ref", f"refs/exps/{first[:2]}/{first[2:]}/wider", first)
    assert found(repository, "wider").commit == first
    git(repository, "commit", "-q", "--allow-empty", "-m", "the branch goes on")
    git(repository, "branch", "wider")
    assert found(repository, "wider").commit == git(repository, "rev-parse", "HEAD").strip() != first


@pytest.mark.parametrize(
    ("content", "said"),
    [("stages: {a: [", "dvc.lock of workspace is broken .*: `git checkout dvc.lock`"), ("", "has no complete result")],
)
def test_a_place_without_result_is_said(content: str, said: str, repository: Path) -> None:
    (repository / "dvc.lock").write_text(content)
    with pytest.raises(UserError, match=said):
        find_results(repository, "workspace")


def warning(root: Path, name: str) -> str:
    return found(root, name).warning() or ""


def test_parameters_that_have_not_run_are_said(repository: Path) -> None:
    """As after a failed run: params.yaml is ahead of the result, which is what `compare` shows."""
    stage = {"cmd": "true", "params": ["sentiment.train"], "outs": ["models/sentiment/trained"]}
    (repository / "dvc.yaml").write_text(json.dumps({"stages": {"train": {"foreach": ["sentiment"], "do": stage}}}))
    params = repository / "params.yaml"
    params.write_text("sentiment: {train: {learning_rate: 2e-3}}\n")
    assert "what has changed since cannot be told" in warning(repository, "workspace"), "DVC is not initialized"
    Repo.init(str(repository)).close()
    assert "is older than what has changed since (train@sentiment: " in warning(repository, "workspace")
    params.write_text("sentiment: {train: {learning_rate: 5e-3}}\n")
    _workspace_changes.cache_clear()
    assert "sentiment.train" not in warning(repository, "workspace"), "YAML's 5e-3 is the lock's 0.005"
    assert not warning(repository, "main"), "a commit's result is the commit's"


def test_a_commit_without_its_reports_is_not_the_result_before(repository: Path) -> None:
    """dvc.lock was committed, and evaluation.json was not: the report shows the change from the one before that."""
    git(repository, "commit", "-qm", "dvc.lock alone", "dvc.lock")
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD)
    before = result_before(found(repository, "workspace"))
    assert before is not None
    assert before.commit == git(repository, "rev-parse", "HEAD~").strip()
    assert before.evaluation()["test"]["accuracy"] == 0.5


@pytest.mark.parametrize("rate", [7e-3, 8e-3])
def test_parameters_that_never_ran_make_no_result(rate: float, repository: Path) -> None:
    """As `dvc exp save` writes it: the record of training is in DVC's cache, and not in the workspace."""
    ran = {"train": {"sentiment.train": {"learning_rate": rate}}}
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD, ran=ran)
    record = repository / "reports/sentiment/ran/train.json"
    Repo.init(str(repository)).close()
    (repository / ".gitignore").write_text("predictions.tsv\nran\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "saved")
    content = record.read_bytes()
    md5 = content_md5(content)
    record.unlink()
    assert "cannot be checked: its records are not here" in warning(repository, "HEAD")
    cached = repository / ".dvc/cache/files/md5" / md5[:2] / md5[2:]
    cached.parent.mkdir(parents=True)
    cached.write_bytes(content)
    if rate == 7e-3:
        assert found(repository, "HEAD").pipeline.params["sentiment.train"] == {"learning_rate": rate}
        return
    with pytest.raises(UserError, match=r"train never ran with the parameters in dvc.lock"):
        find_results(repository, "HEAD")
    write_result(repository, rate=9e-3, module="c" * 32, answers=GOOD)
    before = result_before(found(repository, "workspace"))
    assert before is not None and before.commit == git(repository, "rev-parse", "HEAD~").strip()
