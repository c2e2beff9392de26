"""Which result a name means, and what is said where there is none."""

import json
import subprocess
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.comparing.results import EVALUATION, GOOD, write_result
from tests.kit import clean_environment, git
from tests.warm import with_warm_commands
from transformer.core.digest import parameters_digest
from transformer.core.errors import UserError
from transformer.results.chain import chains_in_lock
from transformer.results.find import find_results, results_before
from transformer.results.naming import row_name
from transformer.results.workspace import content_md5


def test_a_broken_lock_file_is_said(repository: Path) -> None:
    (repository / "dvc.lock").write_text("stages: {a: [")
    with pytest.raises(UserError, match=r"dvc.lock of workspace is broken .*: `git checkout dvc.lock`"):
        find_results(repository, "workspace")


@pytest.mark.parametrize("name", ["main", "HEAD", "row", "row name"])
def test_results_are_found_by_commit_and_row(repository: Path, name: str) -> None:
    commit = git(repository, "rev-parse", "HEAD").strip()
    (chain,) = chains_in_lock(git(repository, "show", "HEAD:dvc.lock").encode())
    names = {"row": chain.row_key(), "row name": row_name(chain)}
    assert find_results(repository, names.get(name, name)).commit == commit


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
    assert find_results(repository, "wider").commit == first
    git(repository, "commit", "-q", "--allow-empty", "-m", "the branch goes on")
    git(repository, "branch", "wider")
    assert find_results(repository, "wider").commit == git(repository, "rev-parse", "HEAD").strip() != first


def test_an_experiment_that_waits_or_runs_is_said(repository: Path) -> None:
    """Waiting in the queue, or running in the workspace."""

    environment = with_warm_commands(clean_environment())

    def dvc(*arguments: str) -> None:
        subprocess.run(["dvc", *arguments], cwd=repository, env=environment, check=True, capture_output=True)

    def refused(name: str) -> str:
        with pytest.raises(UserError) as caught:
            find_results(repository, name)
        return str(caught.value)

    (repository / "dvc.lock").unlink()
    (repository / "dvc.yaml").write_text('stages: {wait: {cmd: "touch started && read line", params: [rate]}}\n')
    (repository / "params.yaml").write_text("rate: 1\n")
    (repository / ".gitignore").write_text("started\n")
    dvc("init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a stage")
    dvc("exp", "run", "--queue", "-n", "waiting", "-S", "rate=2")
    assert refused("waiting").startswith("experiment 'waiting' waits in the queue: `dvc queue start` runs it")
    command = ["dvc", "exp", "run", "-n", "here"]
    with subprocess.Popen(
        command, cwd=repository, env=environment, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
    ) as running:
        deadline = time.monotonic() + 60
        while not (repository / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert refused("here") == "experiment 'here' is still running: compare it when its last stage has ended"
    assert running.returncode != 0
    assert "'here' is not a commit" in refused("here")


def test_a_failed_experiment_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.results.find._experiment_state", lambda root, name: "failed")
    with pytest.raises(UserError, match=r"experiment 'bad' failed, .* `dvc queue logs bad` says why"):
        find_results(repository, "bad")


def test_a_place_without_result_is_said(repository: Path) -> None:
    (repository / "dvc.lock").unlink()
    with pytest.raises(UserError, match="workspace has no complete result"):
        find_results(repository, "workspace")


def test_parameters_that_have_not_run_are_said(repository: Path) -> None:
    """As after a failed run: params.yaml is ahead of the result, which is what `compare` shows."""
    params = repository / "params.yaml"
    params.write_text("sentiment: {tokenize: {}, train: {learning_rate: 5e-3}, export: {alias: best}}\n")
    result = find_results(repository, "workspace")
    assert result.unrun("sentiment") is None, "YAML's 5e-3 is the lock's 0.005, and no stage declares the rest"
    params.write_text("sentiment: {tokenize: {}, train: {learning_rate: 2e-3, steps: 9}}\n")
    line = result.unrun("sentiment")
    assert line is not None
    assert "sentiment.train.learning_rate is 0.005 there and 0.002 in params.yaml; " in line
    assert "sentiment.train.steps is absent there and 9" in line
    assert find_results(repository, "main").unrun("sentiment") is None, "a commit's result is the commit's"


def test_a_commit_without_its_reports_is_not_the_result_before(repository: Path) -> None:
    """dvc.lock was committed, and evaluation.json was not: the report shows the change from the one before that."""
    git(repository, "commit", "-qm", "dvc.lock alone", "dvc.lock")
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD)
    own = find_results(repository, "workspace")
    before = results_before(repository, own.chains["sentiment"])
    assert before is not None
    assert before.commit == git(repository, "rev-parse", "HEAD~").strip()
    assert before.evaluation("sentiment")["test"]["accuracy"] == 0.5


def test_a_commit_of_parameters_that_never_ran_is_not_the_result_before(repository: Path) -> None:
    """As `dvc exp save` writes it: evaluation.json has the digest of other parameters than dvc.lock."""
    path, lock = repository / EVALUATION, repository / "dvc.lock"
    before = content_md5(path.read_bytes())
    path.write_text(path.read_text().replace(parameters_digest({}), "0" * 64))
    lock.write_text(lock.read_text().replace(before, content_md5(path.read_bytes())))
    git(repository, "commit", "-qam", "never run")
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD)
    found = results_before(repository, find_results(repository, "workspace").chains["sentiment"])
    assert found is not None and found.commit == git(repository, "rev-parse", "HEAD~").strip()


def test_parameters_that_never_ran_are_known_by_dvcs_cache(repository: Path) -> None:
    """The workspace does not have the commit's corpus."""
    provenance = json.dumps({"parameters_sha256": "0" * 64}).encode()
    listing = json.dumps([{"md5": content_md5(provenance), "relpath": "provenance.json"}]).encode()
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD, corpus=f"{content_md5(listing)}.dir")
    git(repository, "commit", "-qam", "never run")
    (repository / ".dvc").mkdir()
    assert find_results(repository, "HEAD").chains
    for content, suffix in ((provenance, ""), (listing, ".dir")):
        md5 = content_md5(content)
        cached = repository / ".dvc/cache/files/md5" / md5[:2] / f"{md5[2:]}{suffix}"
        cached.parent.mkdir(parents=True)
        cached.write_bytes(content)
    with pytest.raises(UserError, match=r"download never ran with the parameters in dvc.lock"):
        find_results(repository, "HEAD")
