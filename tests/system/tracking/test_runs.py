"""Runs of a pipeline that DVC really runs: one for each result, complete, and the same after the database is lost."""

import shutil
from pathlib import Path

import pytest

from tests.system.tracking.conftest import run_in
from tests.system.tracking.runs import Shown, client_of, commit, edit, experiment, of_task, shown, sync

SHOWN = (
    "download.seed=1; download.source=sample; tokenize.kind=whitespace; vocab.minimum=2; model.d_model=8;"
    " model.dropout=0.1; train.learning_rate=0.001; train.layers=[2, 3]; train.schedule=null; evaluate.bonus=0;"
    ' evaluate.batch_size=1; convert.formats=["onnx"]'
)
"""The hyperparameters of the first result, as MLflow shows them."""


class Story:
    """One repository's history, with MLflow's runs after each step."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steps: dict[str, dict[str, Shown]] = {"start": {}}

    def step(self, name: str, *command: str) -> None:
        said = run_in(self.root, *command) if command else ""
        assert "Traceback" not in said and "later" not in said, said
        self.steps[name] = shown(self.root)

    def new(self, name: str) -> list[Shown]:
        """The runs that a step added."""
        names = [*self.steps]
        before = self.steps[names[names.index(name) - 1]]
        return [run for key, run in self.steps[name].items() if key not in before]


@pytest.fixture(scope="module")
def story(fresh_repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    story = Story(Path(shutil.copytree(fresh_repository, tmp_path_factory.mktemp("story") / "repository")))
    root = story.root
    story.step("first", "dvc", "repro")
    story.step("again", "dvc", "repro", "--force")
    commit(root, "results")
    edit(root, "bonus: 0", "bonus: 5")
    story.step("evaluated", "dvc", "repro")
    edit(root, "bonus: 5", "bonus: 0")
    story.step("from the run cache", "dvc", "repro")
    warm = ("--name", "warm", "--set-param", "translation.train.learning_rate=1e-2")
    story.step("temp", "dvc", "exp", "run", "--temp", *warm)
    run_in(root, "dvc", "exp", "run", "--queue", "--name", "queued", "--set-param", "sentiment.evaluate.bonus=7")
    story.step("queue", "dvc", "exp", "run", "--run-all")
    edit(root, "tracking: true", "tracking: false")
    edit(root, "minimum: 2", "minimum: 3")
    story.step("untracked", "dvc", "repro")
    edit(root, "tracking: false", "tracking: true")
    story.step("synced", "transformer", "sync")
    return story


def test_a_result_is_one_complete_run(story: Story) -> None:
    (run,) = of_task(story.steps["first"], "translation")
    assert run["status"] == "FINISHED"
    assert 8 < run["seconds"] < 60, "each of the eight stages says that it worked for a second and more"
    assert run["name"] == f"translation {run['tags']['key'][:8]}"
    note = run["tags"]["mlflow.note.content"]
    assert note.startswith("BLEU 0.1 on test") and "](#RUN/artifacts/reports/report.html)" in note
    assert run["params"] == dict(pair.split("=") for pair in SHOWN.split("; "))
    assert [step for step, _ in run["curves"]["train_loss"]] == [10, 20, 30]
    assert run["curves"]["validation.bleu"] == [(0, pytest.approx(0.1))]
    assert run["curves"]["onnx.bytes"] == [(0, len(str({"formats": ["onnx"]})))]
    contexts = (("test", "testing"), ("train", "training"), ("validation", "testing"))
    assert [(name, context) for name, _, context in run["inputs"]] == [(f"translation/{s}", c) for s, c in contexts]
    reports = "conversion.json evaluation.json figures/attention_1.svg history.tsv predictions.tsv report.html"
    names = f"{reports} training.json vocabulary.json".split()
    assert run["files"] == ["params.json", *(f"reports/{name}" for name in names)]
    assert {"MLmodel", "artifacts/bundle/config.json", "artifacts/converted/onnx/model/weights"} <= {*run["model"]}
    assert [name for name, _, _ in run["versions"]] == ["translation-model"]


def test_a_result_that_is_made_again_or_comes_from_the_cache_has_its_run(story: Story) -> None:
    assert story.steps["again"] == story.steps["first"]
    assert story.new("from the run cache") == []


def test_a_name_begins_with_what_differs_from_the_committed_parameters(story: Story) -> None:
    (evaluated,), (warm,), (queued,) = story.new("evaluated"), story.new("temp"), story.new("queue")
    assert [run["name"].rpartition(" ")[0] for run in (evaluated, warm, queued)] == [
        "bonus=5",
        "learning_rate=0.01 warm",
        "bonus=7 queued",
    ]


def test_experiments_write_to_the_repositorys_store(story: Story) -> None:
    head = run_in(story.root, "git", "rev-parse", "HEAD").strip()
    for (run,), name in ((story.new("temp"), "warm"), (story.new("queue"), "queued")):
        assert (run["tags"]["git.commit"], run["tags"]["dvc.experiment"]) == (head, name)


def test_the_alias_is_on_the_best(story: Story) -> None:
    scores = {run["versions"][0][1]: run["run"] for run in of_task(story.steps["synced"], "translation")}
    assert max(scores, key=float) == "5.1"
    (_, _, aliases) = of_task(story.steps["synced"], "translation")[0]["versions"][0]
    assert aliases == {"best": 2}


def test_what_was_not_tracked_is_synced_once(story: Story) -> None:
    assert story.new("untracked") == []
    (run,) = story.new("synced")
    assert run["name"].startswith("minimum=3 ")
    assert sync(story.root).endswith("0 runs written\n")


def test_a_lost_database_comes_back(story: Story, tmp_path: Path) -> None:
    """But for results that no commit or experiment has: that of `evaluated`."""
    root = Path(shutil.copytree(story.root, tmp_path / "copy"))
    (root / "mlflow.db").unlink()
    shutil.rmtree(root / "mlartifacts")
    assert sync(root).endswith("5 runs written\n")
    (lost,) = story.new("evaluated")
    there = {key: run for key, run in story.steps["synced"].items() if run != lost}
    found = shown(root)
    assert found.keys() == {run["tags"]["key"] for run in there.values()} - {lost["tags"]["key"]}
    for key, run in found.items():
        for what in ("name", "params", "curves", "inputs", "model"):
            assert run[what] == there[key][what], what
    assert sync(root).endswith("0 runs written\n")


def test_missing_files_are_named_with_the_command_that_brings_them(story: Story, tmp_path: Path) -> None:
    run_in(tmp_path, "git", "clone", "--quiet", str(story.root), "clone")
    said = sync(tmp_path / "clone")
    assert "2 results not recorded (" in said and "`dvc fetch --all-commits` brings them" in said
    shutil.copytree(story.root / ".dvc" / "cache" / "files", tmp_path / "clone" / ".dvc" / "cache" / "files")
    assert sync(tmp_path / "clone").endswith("2 runs written\n")


def test_an_unfinished_run_is_replaced(dvc_repository: Path) -> None:
    run_in(dvc_repository, "dvc", "repro", "report@sentiment")
    ((key, first),) = shown(dvc_repository).items()
    client = client_of(dvc_repository)
    client.update_run(first["run"], "RUNNING")
    assert sync(dvc_repository).endswith("1 runs written\n")
    ((now, second),) = shown(dvc_repository).items()
    assert now == key and second["run"] != first["run"] and second["status"] == "FINISHED"
    assert len(second["versions"]) == 1 and second["versions"][0][2] == {"best": 2}, "and the first one's is gone"
    client.create_run(experiment(client, "sentiment"), tags={"key": key})
    assert sync(dvc_repository).endswith("0 runs written\n")
    assert [run["run"] for run in shown(dvc_repository).values()] == [second["run"]]


def test_what_is_no_result_gets_no_run(dvc_repository: Path) -> None:
    """Parts of a result, parameters that never ran, and files of another branch's result."""
    run_in(dvc_repository, "dvc", "repro")
    first, head = shown(dvc_repository), commit(dvc_repository, "results")
    edit(dvc_repository, "learning_rate: 1e-3", "learning_rate: 1e-2")
    run_in(dvc_repository, "dvc", "repro", "train@translation")
    assert sync(dvc_repository).endswith("0 runs written\n"), "the model is newer than its scores"
    commit(dvc_repository, "a part")
    assert sync(dvc_repository).endswith("0 runs written\n")
    run_in(dvc_repository, "git", "checkout", "--quiet", "-b", "other", head)
    run_in(dvc_repository, "dvc", "checkout", "--quiet", "--force")
    edit(dvc_repository, "bonus: 0", "bonus: 9", "params.yaml")
    run_in(dvc_repository, "dvc", "exp", "save", "--force", "--name", "saved")
    assert sync(dvc_repository).endswith("0 runs written\n"), "no stage ran with the bonus"
    run_in(dvc_repository, "git", "checkout", "--quiet", "--", "params.yaml")
    (dvc_repository / "mlflow.db").unlink()
    shutil.rmtree(dvc_repository / "mlartifacts")
    (dvc_repository / "reports/translation/evaluation.json").write_text("{}")
    assert sync(dvc_repository).endswith("2 runs written\n"), "git has the file as it was"
    assert shown(dvc_repository).keys() == first.keys()


def test_files_of_another_result_are_refused_until_they_are_checked_out(dvc_repository: Path) -> None:
    edit(dvc_repository, "tracking: true", "tracking: false")
    run_in(dvc_repository, "dvc", "repro", "report@sentiment")
    bundle = dvc_repository / "models/sentiment/bundle/config.json"
    before = bundle.read_bytes()
    bundle.unlink()
    bundle.write_bytes(before + b" ")
    said = sync(dvc_repository)
    assert "models/sentiment/bundle is not what dvc.lock says: run `dvc checkout`" in said
    assert said.endswith("0 runs written\n")
    run_in(dvc_repository, "dvc", "checkout", "--quiet", "--force", "export@sentiment")
    assert sync(dvc_repository).endswith("1 runs written\n")


def test_a_result_that_mlflow_does_not_take_is_named_and_the_others_are_written(dvc_repository: Path) -> None:
    edit(dvc_repository, "tracking: true", "tracking: false")
    edit(dvc_repository, "registered_name: sentiment-model", "registered_name: a/b")
    label = "claims about water " * 20
    edit(dvc_repository, "schedule: null", f"schedule: null, class_weights: {{{label}: 1, other: 2}}")
    run_in(dvc_repository, "dvc", "repro")
    edit(dvc_repository, "bonus: 0", "bonus: 5")
    for written in (1, 0):
        said = sync(dvc_repository)
        assert "sentiment of workspace: not recorded, since MLflow does not take it" in said or not written
        assert said.startswith("sentiment") and said.endswith(f"{written} runs written\n")
    client = client_of(dvc_repository)
    (run,) = client.search_runs([experiment(client, "translation")])
    assert run.info.status == "FINISHED" and "train_loss" in run.data.metrics
    assert sum(name.startswith("train.class_weights.claims about water") for name in run.data.params) == 1
