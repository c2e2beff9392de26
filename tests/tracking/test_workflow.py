"""Rows of a pipeline that DVC really runs: written once, complete, and identical after the database is lost."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.tracking.conftest import run_in
from transformer.export.converted import engines_of
from transformer.tracking.sync import missing_rows

SYNC = """
from pathlib import Path
from transformer.tracking.sync import sync
print("rows", sync(Path.cwd(), echo=print))
"""
Row = dict[str, Any]


def sync(root: Path) -> str:
    return run_in(root, "python", "-c", SYNC)


def edit(root: Path, old: str, new: str, name: str = "params.yaml") -> None:
    path = root / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


class Reader:
    """MLflow's current content, read from a copy: an engine of this process must not outlive a deleted database."""

    def __init__(self, root: Path, folder: Path) -> None:
        copy = folder / f"{len([*folder.glob('*.db')])}.db"
        shutil.copy(root / "mlflow.db", copy)
        self.client = MlflowClient(f"sqlite:///{copy}", f"sqlite:///{copy}")

    def runs(self, kind: str) -> list[Any]:
        experiments = [experiment.experiment_id for experiment in self.client.search_experiments()]
        return [*self.client.search_runs(experiments, f"tags.kind = '{kind}'")]

    def rows(self) -> dict[str, Row]:
        runs = self.runs("result")
        found = {run.data.tags["row_key"]: self._row(run) for run in runs}
        assert len(found) == len(runs), "a result has two rows"
        return found

    def _row(self, run: Any) -> Row:
        history = {name: self.client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
        artifacts = Path(run.info.artifact_uri.removeprefix("file://"))
        own = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
        return {
            "name": run.info.run_name,
            "status": run.info.status,
            "start": run.info.start_time,
            "params": run.data.params,
            "tags": {name: value.replace(own, "#RUN") for name, value in run.data.tags.items()},
            "curves": {name: [(p.step, p.value, p.timestamp) for p in points] for name, points in history.items()},
            "inputs": sorted((i.dataset.name, i.dataset.digest, i.tags[0].value) for i in run.inputs.dataset_inputs),
            "files": {str(f.relative_to(artifacts)): f.read_bytes() for f in artifacts.rglob("*") if f.is_file()},
            "models": len(run.outputs.model_outputs),
            "converted": self._converted(run),
            "bundle": (self._model(run) / "artifacts" / "bundle" / "config.json").read_text(),
            "versions": self._versions(run),
        }

    def _converted(self, run: Any) -> dict[str, bytes]:
        """The converted models beside the bundle of the row's model."""
        model = self._model(run)
        folder = model / "artifacts" / "converted"
        assert engines_of(model / "artifacts" / "bundle") == sorted(path.name for path in folder.glob("*"))
        return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}

    def _model(self, run: Any) -> Path:
        (output,) = run.outputs.model_outputs
        return Path(self.client.get_logged_model(output.model_id).artifact_location.removeprefix("file://"))

    def _versions(self, run: Any) -> list[Any]:
        found = self.client.search_model_versions(f"tags.row_key = '{run.data.tags['row_key']}'")
        return [(v.name, v.version, v.tags, self.client.get_model_version(v.name, v.version).aliases) for v in found]


class Story:
    """One repository's history of runs, with the rows after each step."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.steps: dict[str, dict[str, Row]] = {}

    def read(self) -> Reader:
        return Reader(self.root, self.folder)

    def step(self, name: str, *command: str) -> None:
        if command:
            output = run_in(self.root, *command)
            assert not [word for word in ("tracking:", "Warning", "INFO") if word in output], output
        self.steps[name] = self.read().rows()

    def new(self, name: str) -> list[Row]:
        """The rows that a step added."""
        names = [*self.steps]
        before = self.steps[names[names.index(name) - 1]]
        return [row for key, row in self.steps[name].items() if key not in before]


@pytest.fixture(scope="module")
def story(fresh_repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = Path(shutil.copytree(fresh_repository, tmp_path_factory.mktemp("story") / "repository"))
    story = Story(root, tmp_path_factory.mktemp("read"))
    story.step("first", "dvc", "repro")
    story.step("again", "dvc", "repro")
    edit(root, "bonus: 0", "bonus: 5")
    story.step("evaluate", "dvc", "repro")
    run_in(root, "git", "add", "--all")
    run_in(root, "git", "commit", "--quiet", "--message", "results")
    override = "translation.train.learning_rate=1e-2"
    story.step("temp", "dvc", "exp", "run", "--temp", "--name", "warm", "--set-param", override)
    queued = ("--queue", "--name", "queued", "--set-param", "sentiment.evaluate.bonus=7")
    run_in(root, "dvc", "exp", "run", *queued)
    story.step("queue", "dvc", "exp", "run", "--run-all")
    edit(root, "batch_size: 1.0", "batch_size: 2")
    edit(root, "tracking: true", "tracking: false")
    run_in(root, "dvc", "repro")
    edit(root, "tracking: false", "tracking: true")
    story.step("untracked")
    assert missing_rows(root)
    assert "rows 1\n" in sync(root)
    assert not missing_rows(root)
    story.step("synced")
    edit(root, "sentences: [a]", "sentences: [b]")
    story.step("redrawn", "dvc", "repro")
    edit(root, "formats: [onnx]", "formats: [onnx-int8, onnx]")
    story.step("converted again", "dvc", "repro", "convert@translation")
    edit(root, "formats: [onnx-int8, onnx]", "formats: []")
    story.step("nothing converted", "dvc", "repro", "convert@translation")
    edit(root, '{"task": task', '{"newer": True, "task": task', "pipeline.py")
    story.step("exported again", "dvc", "repro", "--force", "--single-item", "export@translation")
    story.step("exported and converted", "dvc", "repro", "--single-item", "convert@translation")
    return story


def test_a_result_is_one_complete_row(story: Story) -> None:
    rows = {row["tags"]["task"]: row for row in story.steps["first"].values()}
    assert set(rows) == {"translation", "sentiment"}
    row = rows["translation"]
    assert row["status"] == "FINISHED"
    assert row["name"] == f"translation {row['tags']['row_key'][:8]}"
    assert "](#RUN/artifacts/reports/report.html)" in row["tags"]["mlflow.note.content"]
    assert row["params"] == {
        "tokenize.kind": "whitespace",
        "vocab.minimum": "2",
        "model.d_model": "8",
        "model.dropout": "0.1",
        "train.learning_rate": "0.001",
        "train.layers": "[2, 3]",
        "train.schedule": "null",
        "evaluate.bonus": "0",
        "evaluate.batch_size": "1",
        "hardware.device": "cpu",
        "hardware.threads": "2",
    }
    assert [step for step, _, _ in row["curves"]["train_loss"]] == [10, 20, 30]
    assert row["curves"]["validation.score"][0][1] == pytest.approx(0.1)
    assert [name for name, _, _ in row["inputs"]] == [f"translation/{s}" for s in ("test", "train", "validation")]
    assert row["curves"]["convert.onnx.bytes"] == [(0, len(str({"formats": ["onnx"]})), 0)]
    reports = (
        "conversion.json",
        "evaluation.json",
        "figures/attention_1.svg",
        "history.tsv",
        "plots/curve.tsv",
        "predictions.tsv",
        "report.html",
        "training.json",
        "vocabulary.json",
    )
    assert sorted(row["files"]) == ["params.json", *(f"reports/{name}" for name in reports)]
    assert b'"seed": 1' in row["files"]["params.json"]
    assert (row["models"], len(row["versions"])) == (1, 1)
    assert row["tags"]["device"] == "cpu"


def test_repeating_adds_nothing(story: Story) -> None:
    assert story.steps["again"] == story.steps["first"]


def test_a_new_evaluation_is_a_row_that_names_its_training(story: Story) -> None:
    (row,) = story.new("evaluate")
    old = next(old for old in story.steps["first"].values() if old["tags"]["task"] == "translation")
    assert row["tags"]["trained_by"] == old["tags"]["trained_by"]
    assert row["curves"]["train_loss"] == old["curves"]["train_loss"]
    assert row["params"]["evaluate.bonus"] == "5"
    assert row["name"] == f"translation {row['tags']['row_key'][:8]}"  # no commit has a result to differ from
    trained = [run for run in story.read().runs("stage") if run.info.run_name == row["tags"]["trained_by"]]
    assert len(trained) == 1 and trained[0].data.metrics == {"live_loss": 0.5, "tokens_per_second": 7.0}


def test_executed_stages_are_children_of_their_row(story: Story) -> None:
    reader = story.read()
    parents = {run.info.run_id: run for run in reader.runs("result")}
    children = reader.runs("stage")
    assert {run.data.tags["mlflow.parentRunId"] in parents for run in children} == {True}
    executed = [run.data.tags["stage"] for run in children if run.data.tags["task"] == "sentiment"]
    assert sorted(executed) == sorted(
        ["download", "tokenize", "build_vocab", "train", "figures", *["evaluate", "export", "convert"] * 2]
    )


def test_experiments_land_in_the_same_store(story: Story) -> None:
    head = subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=story.root, text=True).strip()
    (warm,), (queued,) = story.new("temp"), story.new("queue")
    for row, name, task in ((warm, "warm", "translation"), (queued, "queued", "sentiment")):
        assert row["name"] == row["tags"]["dvc.experiment"] == name
        assert row["tags"]["git.commit"] == head
        assert row["tags"]["task"] == task
    assert warm["params"]["train.learning_rate"] == "0.01"
    assert warm["versions"][0][3] == ["best"]


def test_a_result_that_was_not_tracked_gets_its_row(story: Story) -> None:
    assert story.new("untracked") == []
    (row,) = story.new("synced")
    assert row["params"]["evaluate.batch_size"] == "2"
    assert row["name"] == f"batch_size=2 {row['tags']['row_key'][:8]}"


def test_figures_go_to_the_row_that_they_show_and_make_no_other(story: Story) -> None:
    before, after = story.steps["synced"], story.steps["redrawn"]
    assert before.keys() == after.keys()
    assert not missing_rows(story.root)
    drawn = [key for key in after if before[key] != after[key]]
    assert len(drawn) == 1
    for rows, sentence in ((before, b"['a']"), (after, b"['b']")):
        assert rows[drawn[0]]["files"]["reports/figures/attention_1.svg"].endswith(sentence)
    assert all(row["tags"]["figures"].endswith(".dir") for row in after.values())
    assert all(row["tags"]["converted"].endswith(".dir") for row in after.values())
    assert after[drawn[0]]["params"]["evaluate.batch_size"] == "2"


def test_a_conversion_goes_to_the_model_of_its_row_and_makes_no_other_row(story: Story) -> None:
    before, after = story.steps["redrawn"], story.steps["converted again"]
    assert all({"onnx/config.json", "onnx/model/weights"} == row["converted"].keys() for row in before.values())
    (key,) = (key for key in after if before[key] != after[key])
    assert before.keys() == after.keys() and after[key]["params"]["evaluate.batch_size"] == "2"
    assert {"onnx/config.json", "onnx-int8/model/weights"} < after[key]["converted"].keys()
    sizes = [value for _, value, _ in after[key]["curves"]["convert.onnx.bytes"]]
    assert sizes == [len(str({"formats": names})) for names in (["onnx"], ["onnx-int8", "onnx"])]
    assert json.loads(after[key]["files"]["reports/conversion.json"])["onnx-int8"] == {"bytes": sizes[1]}
    assert len(after[key]["versions"]) == after[key]["models"] == 1


def test_a_model_without_conversions_gets_the_newest_bundle(story: Story) -> None:
    before, after = story.steps["nothing converted"], story.steps["exported and converted"]
    (key,) = (key for key in after if before[key] != after[key])
    assert before[key]["converted"] == after[key]["converted"] == {}
    assert ["newer" in row[key]["bundle"] for row in (before, after)] == [False, True]
    assert not missing_rows(story.root)


def test_a_lost_database_comes_back(story: Story) -> None:
    for name in ("mlflow.db", "mlartifacts"):
        path = story.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert missing_rows(story.root)
    assert f"rows {len(story.steps['redrawn'])}\n" in sync(story.root)
    assert without_pages(story.read().rows()) == without_pages(story.steps["exported and converted"])
    assert sync(story.root) == "rows 0\n"


def without_pages(rows: dict[str, Row]) -> dict[str, Row]:
    """The rows without their reports: a workspace has only its own result's report. Of conversions, the last one."""
    return {
        key: {
            **row,
            "tags": {name: value for name, value in row["tags"].items() if name != "report"},
            "files": {name: content for name, content in row["files"].items() if name != "reports/report.html"},
            "curves": {
                name: points[-1][1] if name.startswith("convert.") else points
                for name, points in row["curves"].items()
                if row["converted"] or not name.startswith("convert.")  # those of older conversions stay
            },
        }
        for key, row in rows.items()
    }


def test_a_clone_without_the_local_notes_has_the_same_results(story: Story, tmp_path: Path) -> None:
    """From git and DVC's cache alone, without experiments: the committed results, on the commits they were made on."""
    run_in(story.root, "git", "checkout", "--quiet", "params.yaml", "dvc.lock")
    run_in(tmp_path, "git", "clone", "--quiet", str(story.root), "clone")
    clone = tmp_path / "clone"
    assert "2 older results of commits or experiments not recorded: their files are missing" in sync(clone)
    quiet = run_in(clone, "python", "-c", "from transformer.commands.summary import *; print_summary(Path())")
    assert "not recorded" not in quiet and "\nNext\n" in quiet  # the notice is only for `sync`
    shutil.copytree(story.root / ".dvc" / "cache" / "files", clone / ".dvc" / "cache" / "files")
    assert "rows 2\n" in sync(clone)
    originals = without_pages(story.steps["redrawn"])
    for key, row in without_pages(Reader(clone, tmp_path).rows()).items():
        original = originals[key]
        assert {k: v for k, v in row.items() if k not in ("start", "versions")} == {
            k: v for k, v in original.items() if k not in ("start", "versions")
        }


def test_asking_for_missing_rows_imports_no_mlflow(story: Story) -> None:
    code = """
import sys, time
from pathlib import Path
from transformer.tracking.sync import missing_rows
started = time.perf_counter()
assert not missing_rows(Path.cwd())
assert time.perf_counter() - started < 0.05
assert not {"mlflow", "dvc.repo", "pandas"} & set(sys.modules)
"""
    run_in(story.root, sys.executable, "-c", code)
