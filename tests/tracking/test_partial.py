"""Stages that ran alone in a pipeline that DVC really runs: they are not a result, and shown as what they are."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.tracking.conftest import environment, run_in
from transformer.core.errors import UserError
from transformer.report.build import write_page
from transformer.results.chain import Chain, all_chains
from transformer.results.find import find_results
from transformer.tracking.sync import sync

NEWER = "the model is newer than its scores; run `dvc repro report@translation` (evaluate, export)"


class Story:
    """A repository in which train, and then export, ran without the stages between."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: dict[str, str] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def step(self, name: str, *command: str) -> None:
        if command:
            self.said[name] = run_in(self.root, *command)
        self.rows[name] = self.runs("result")

    def runs(self, kind: str) -> dict[str, Any]:
        """The runs of a kind, by id."""
        client = MlflowClient(f"sqlite:///{self.root}/mlflow.db")
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        found = client.search_runs(experiments, f"tags.kind = '{kind}'")
        return {run.info.run_id: run for run in found}

    def chain(self) -> Chain:
        found = all_chains((self.root / "dvc.lock").read_bytes())
        return next(chain for chain in found if chain.task == "translation")

    def transformer(self, command: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; from transformer.cli import main; sys.argv = ['transformer', *{command.split()}]; main()"
        return subprocess.run(("python", "-c", code), cwd=self.root, env=environment(), capture_output=True, text=True)


@pytest.fixture(scope="module")
def story(evaluated: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = Path(shutil.copytree(evaluated, tmp_path_factory.mktemp("partial") / "repository"))
    story = Story(root)
    story.step("first", "dvc", "repro", "report@translation")
    run_in(root, "git", "add", "--all")
    run_in(root, "git", "commit", "--quiet", "--message", "result")
    change = "translation.train.learning_rate=5e-2"
    story.step("train", "dvc", "exp", "run", "--name", "trainonly", "--set-param", change, "train@translation")
    story.said["summary"] = story.transformer("summary").stdout
    done = story.transformer("compare HEAD trainonly")
    story.said["compare"] = done.stderr
    assert (done.returncode, done.stdout) == (1, "")
    with pytest.raises(UserError) as refused:
        write_page(root, "translation")
    story.said["report"] = str(refused.value)
    story.step("export", "dvc", "repro", "--single-item", "export@translation")
    story.step("whole", "dvc", "repro", "report@translation")
    return story


def test_a_training_alone_is_a_child_run_with_its_name_and_no_row(story: Story) -> None:
    assert story.rows["train"].keys() == story.rows["first"].keys()
    (child,) = (run for run in story.runs("stage").values() if "dvc.experiment" in run.data.tags)
    assert child.info.run_name.startswith("train ") and child.info.run_name.endswith(" (trainonly)")
    assert child.data.tags["dvc.experiment"] == "trainonly"


@pytest.mark.parametrize("where", ["summary", "compare", "report"])
def test_what_shows_results_says_what_to_run(story: Story, where: str) -> None:
    assert NEWER in story.said[where]


def test_an_export_alone_writes_no_row_and_a_whole_run_does(story: Story) -> None:
    assert f"tracking: translation: dvc.lock has no consistent result: {NEWER}" in story.said["export"]
    assert story.rows["export"].keys() == story.rows["first"].keys()
    (row,) = (run for key, run in story.rows["whole"].items() if key not in story.rows["first"])
    assert row.data.params["train.learning_rate"] == "0.05"
    trained = next(run for run in story.runs("stage").values() if "dvc.experiment" in run.data.tags)
    assert trained.data.tags["mlflow.parentRunId"] == row.info.run_id


def test_files_of_another_result_are_refused_until_dvc_checkout(story: Story, tmp_path: Path) -> None:
    """`git checkout` changes dvc.lock and files tracked by git; those tracked by DVC stay as they were."""
    root = Path(shutil.copytree(story.root, tmp_path / "repository", symlinks=True))
    run_in(root, "git", "checkout", "--quiet", "--force", "HEAD")
    page = (root / "reports/translation/report.html").read_bytes()
    with pytest.raises(UserError, match=r"^reports/translation/.* is not what dvc\.lock says: run `dvc checkout`"):
        write_page(root, "translation")
    with pytest.raises(UserError, match=r"predictions\.tsv is not what dvc\.lock says: run `dvc checkout`"):
        (root / "reports/translation/predictions.tsv").unlink()
        (root / "reports/translation/predictions.tsv").write_text("split\tsource\n")
        find_results(root, "workspace").predictions("translation")
    assert "translation: report not written: reports/translation/" in Story(root).transformer("summary").stdout
    assert (root / "reports/translation/report.html").read_bytes() == page, "the page of another result stays"
    assert sync(root, echo=print) == 0
    reports = {key: run.data.tags["report"] for key, run in story.rows["whole"].items()}
    assert {key: run.data.tags["report"] for key, run in Story(root).runs("result").items()} == reports
