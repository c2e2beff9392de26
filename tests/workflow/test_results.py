"""Results of the real workflow: one MLflow run per result, reports, and exported models."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import Clone
from transformer.core.files import json_bytes, read_json, read_rows, read_table
from transformer.encoded.vocabulary import read_vocabularies
from transformer.registry import TASKS
from transformer.results.headline import shortfall

ROWS = """
import json, sys
from transformer.tracking.store import open_store
from pathlib import Path
rows = []
for task in ("translation", "sentiment"):
    store = open_store(Path.cwd(), task)
    for run in store.client.search_runs([store.experiment_id], "tags.kind = 'result'"):
        client = store.client
        curves = {name: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]
                  for name in run.data.metrics}
        rows.append({
            "task": task, "name": run.info.run_name, "params": run.data.params, "curves": curves,
            # A rebuilt row has no report: the workspace has just that of its own result.
            "tags": {k: v for k, v in run.data.tags.items() if not k.startswith("mlflow.") and k != "report"},
            "note": run.data.tags["mlflow.note.content"].splitlines()[0],
            "files": sorted(f.path for f in client.list_artifacts(run.info.run_id)),
            "inputs": sorted((i.dataset.name, i.dataset.digest) for i in run.inputs.dataset_inputs),
        })
print(json.dumps(sorted(rows, key=lambda row: (row["task"], row["tags"]["row_key"]))))
"""
QUIET = {"runtime.tracking": False}
"""For tests that do not look at rows, which take seconds."""


def rows(clone: Clone) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(clone.run("python", "-c", ROWS).stdout)
    return result


@pytest.fixture
def restored(workflow: Clone) -> Iterator[Clone]:
    """The shared clone without tracking, reset to its commit afterwards."""
    workflow.change(QUIET)
    yield workflow
    workflow.run("git", "checkout", "-q", "--", ".")
    workflow.run("dvc", "checkout", "-q", "--force")


def test_every_task_has_one_complete_row(workflow: Clone) -> None:
    workflow.run("transformer", "sync")
    lock = workflow.root / "dvc.lock"
    found = {row["task"]: row for row in rows(workflow) if row["tags"]["row_key"] in _keys(lock)}
    assert set(found) == {"translation", "sentiment"}
    for task, row in found.items():
        history = list(read_table(workflow.root / "reports" / task / "history.tsv"))
        curve = [[int(line["step"]), float(line["validation_loss"])] for line in history]
        assert sorted(row["curves"]["validation_loss"]) == curve
        assert row["params"]["train.learning_rate"] == "0.001"
        assert not any(name.startswith(("download.", "export.", "runtime.", "vocab.path")) for name in row["params"])
        assert {"params.json", "reports"} <= set(row["files"])
        assert {f"{task}/train", f"{task}/validation", f"{task}/test"} <= {name for name, _ in row["inputs"]}
        assert row["tags"]["trained_by"].startswith("train ")
        assert row["tags"]["git.commit"]
        assert row["tags"]["figures"] == _figures(lock, task)
        behind = shortfall(read_json(workflow.root / "reports" / task / "evaluation.json"))
        assert row["note"].endswith(behind)
        assert ("the linear baseline" in row["note"]) is (task == "sentiment")  # the profile `smoke` learns nothing


def _figures(lock: Path, task: str) -> str | None:
    from transformer.results.chain import chains_in_lock

    return next(chain.view_md5("figures") for chain in chains_in_lock(lock.read_bytes()) if chain.task == task)


def _keys(lock: Path) -> set[str]:
    from transformer.results.chain import chains_in_lock

    return {chain.row_key() for chain in chains_in_lock(lock.read_bytes())}


@pytest.mark.stress  # tests/tracking/test_workflow.py does the same with a tiny pipeline
def test_another_evaluation_adds_one_row(restored: Clone) -> None:
    restored.run("transformer", "sync")
    before = rows(restored)
    assert restored.repro() == []
    assert rows(restored) == before
    restored.change({"translation.evaluate.max_length": 9, "runtime.tracking": True})
    stages = ("figures", "evaluate", "export", "report")
    assert restored.repro() == [f"{stage}@translation" for stage in stages]
    added = [row for row in rows(restored) if row not in before]
    assert len(added) == 1
    assert added[0]["name"] == f"de-en evaluate.max_length=9 {added[0]['tags']['row_key'][:8]}"
    compared = restored.run("transformer", "compare", "HEAD", "--task", "translation", "--markdown").stdout
    assert re.search(r"\| translation\.evaluate\.max_length +\| \d+ +\| 9 +\|", compared)
    assert re.search(r"\| test +\| chrf +\|( -?[\d.]+ +\|){2} [-+][\d.]+ +\| \S+ to \S+ +\| [01]\.\d{3} \|", compared)
    assert "**Code:** the same" in compared
    assert len(added[0]["curves"]["train_loss"]) >= 2
    assert added[0]["tags"]["trained_by"] in {row["tags"]["trained_by"] for row in before}


@pytest.mark.stress  # tests/tracking/test_workflow.py loses the database of a tiny pipeline
def test_a_lost_database_comes_back(restored: Clone) -> None:
    restored.run("transformer", "sync")
    everything = rows(restored)
    (restored.root / "mlflow.db").unlink()
    restored.run("transformer", "sync")
    assert rows(restored) == everything
    assert restored.run("transformer", "sync").stdout == "0 rows written\n"


def test_figures_show_the_first_validation_sentences_with_their_tokens(workflow: Clone) -> None:
    tokens = {task: read_rows(workflow.root / f"data/{task}/tokens/validation.jsonl") for task in TASKS}
    for number in (1, 2, 3):
        words = next(tokens["translation"])["source"].split()
        path = workflow.root / f"reports/translation/figures/cross_attention_{number}.svg"
        found = [text.text for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        vocabulary = read_vocabularies(workflow.root / "data/translation/vocab")["source"]
        known = {word for word in words if vocabulary.tokenizer.token_to_id(word) is not None}
        assert known and known | {"<bos>", "<eos>"} <= set(found)
    names = {path.stem for path in (workflow.root / "reports/sentiment/figures").iterdir()}
    code = {"positions", "scale", "masks", "schedules"}
    assert names == {"attention"} | code | {
        f"{kind}_attention_{n}" for kind in ("encoder", "pooled") for n in (1, 2, 3)
    }


def test_the_report_shows_the_result(restored: Clone) -> None:
    restored.run("transformer", "report")  # another test may have left the page of another result
    for task, score in (("translation", "BLEU"), ("sentiment", "Accuracy")):
        page = (restored.root / f"reports/{task}/report.html").read_text(encoding="utf-8")
        assert re.search(rf'class="headline">{score} [\d.]+.* on test, 95 % interval [\d.]+.* to [\d.]+', page)
        assert "No commit holds another result of this task." in page
        assert '"name": "encoder attention"' in page


@pytest.mark.stress  # so does the clone of test_remote.py
def test_a_clone_without_pages_gets_them_in_the_end(restored: Clone) -> None:
    pages = [restored.root / f"reports/{task}/report.html" for task in TASKS]
    restored.run("transformer", "summary")  # another test may have left the page of another result
    before = [page.read_bytes() for page in pages]
    for page in pages:
        page.unlink()
    assert restored.repro() == []
    restored.run("transformer", "summary")
    assert [page.read_bytes() for page in pages] == before


def test_the_registered_model_answers_as_the_bundle(workflow: Clone) -> None:
    code = """
import sys, pandas, mlflow, transformer
from pathlib import Path
from transformer.tracking.store import open_store
open_store(Path.cwd(), "sentiment")
texts = ["A fine film.", "Never again."]
model = mlflow.pyfunc.load_model("models:/sentiment-sample@best")
served = model.predict(pandas.DataFrame({"text": texts}))
bundle = transformer.load("models/sentiment/bundle").classify(texts)
assert [tuple(row) for row in served.itertuples(index=False)] == [tuple(answer) for answer in bundle], served
assert str(model.metadata.signature.inputs.input_names()) == "['text']"
"""
    workflow.run("python", "-c", code)


def test_a_bundle_opens_without_dvc_and_mlflow(workflow: Clone, tmp_path: Path) -> None:
    code = """
import sys, transformer
translator = transformer.load(sys.argv[1])
assert translator.translate([]) == []
assert translator.translate(["", "Ein Mann schläft."])[0] == ""
assert not {"mlflow", "dvc", "datasets", "pandas"} & set(sys.modules)
"""
    (workflow.root / "models/translation/bundle").rename(tmp_path / "moved")
    try:
        workflow.run(sys.executable, "-c", code, str(tmp_path / "moved"))
    finally:
        (tmp_path / "moved").rename(workflow.root / "models/translation/bundle")


def test_export_fails_if_its_answers_differ_from_evaluates(restored: Clone) -> None:
    path = restored.root / "reports/sentiment/predictions.tsv"
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    path.unlink()  # it may be a link into DVC's cache
    other = {"negative": "positive", "positive": "negative"}
    *cells, prediction, probability = first.split("\t")
    first = "\t".join((*cells, other[prediction], probability))
    path.write_text("\n".join((header, first, *rest)) + "\n", encoding="utf-8")
    done = restored.run("python", "-m", "stages.export", "sentiment", check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("error: export@sentiment: the exported model answers")


def without_digest(path: Path) -> bytes:
    """The output of evaluate, without the digest of its parameters."""
    content = read_json(path)
    assert len(content["signatures"].pop("parameters")) == 64
    return json_bytes(content)


@pytest.mark.stress  # tests/decoding/test_decode.py compares batch sizes without the workflow
def test_evaluation_does_not_depend_on_the_batch_size(restored: Clone) -> None:
    """Another order of sums may change the last of the probabilities' six decimals."""
    before = {task: read_json(restored.root / f"reports/{task}/evaluation.json") for task in TASKS}
    restored.change({"translation.evaluate.batch_size": 3, "sentiment.evaluate.batch_size": 7})
    restored.repro("evaluate@translation", "evaluate@sentiment")
    for task, metrics in before.items():
        found = read_json(restored.root / f"reports/{task}/evaluation.json")
        assert found.pop("signatures").keys() == metrics.pop("signatures").keys()
        assert found.keys() == metrics.keys()
        for split, figures in metrics.items():
            assert found[split] == pytest.approx(figures, abs=2e-6), (task, split)


@pytest.mark.stress  # tests/evaluation/test_baseline.py compares without the workflow
def test_a_result_does_not_differ_from_its_own_commit_or_file(restored: Clone) -> None:
    commit = restored.run("git", "rev-parse", "--short", "HEAD").stdout.strip()
    name = restored.root / "data/local/baseline/sentiment/same.tsv"
    name.write_bytes((restored.root / "reports/sentiment/predictions.tsv").read_bytes())
    before = {task: read_json(restored.root / f"reports/{task}/evaluation.json") for task in TASKS}
    restored.change({"translation.evaluate.baseline": commit, "sentiment.evaluate.baseline": name.name})
    ran = restored.repro("evaluate@translation", "evaluate@sentiment")
    name.unlink()
    assert sorted(ran) == ["evaluate@sentiment", "evaluate@translation"]
    for task, metrics in (
        ("translation", ("bleu_13a_lowercased", "chrf")),
        ("sentiment", ("accuracy", "f1", "roc_auc")),
    ):
        after = read_json(restored.root / f"reports/{task}/evaluation.json")
        for split in ("validation", "test"):
            added = {key: after[split][key] for key in after[split].keys() - before[task][split].keys()}
            assert added == {
                name: value
                for metric in metrics
                for name, value in (
                    (f"baseline_{metric}", after[split][metric]),
                    (f"{metric}_minus_baseline", 0),
                    (f"{metric}_minus_baseline_low", 0),
                    (f"{metric}_minus_baseline_high", 0),
                    (f"{metric}_minus_baseline_p", 1),
                )
            }
            assert {key: after[split][key] for key in before[task][split]} == before[task][split]


@pytest.mark.stress  # tests/tracking/test_chain.py has the same with a tiny pipeline
@pytest.mark.parametrize("leaf", ["train.learning_rate", "evaluate.max_length", "vocab.min_frequency"])
def test_parameters_that_were_never_run_make_no_result(restored: Clone, leaf: str) -> None:
    """Like `dvc exp save`, `dvc commit --force` writes the current parameters into dvc.lock."""
    before = rows(restored)
    restored.change({f"translation.{leaf}": 3})
    restored.run("dvc", "commit", "--force")
    said = restored.run("transformer", "compare", "HEAD", "--task", "translation", check=False).stderr
    stage = {"train": "train", "evaluate": "evaluate", "vocab": "build_vocab"}[leaf.partition(".")[0]]
    assert f"{stage} never ran with the parameters in dvc.lock" in said
    assert "dvc.lock has parameters for them that were never run" in restored.run("transformer", "sync").stderr
    assert rows(restored) == before


def test_what_evaluate_writes_can_be_read(workflow: Clone) -> None:
    for task in TASKS:
        reports = workflow.root / "reports" / task
        figures = read_json(reports / "evaluation.json")
        for split in ("validation", "test"):
            assert all(isinstance(value, int | float) for value in figures[split].values())
            main = {"translation": "chrf", "sentiment": "accuracy", "language": "perplexity"}[task]
            assert figures[split][f"{main}_low"] <= figures[split][main] <= figures[split][f"{main}_high"]
        tables = sorted(path.name for path in (reports / "tables").iterdir())
        assert (
            tables
            == {
                "translation": ["duplicates.tsv", "groups.tsv", "sentences.tsv"],
                "sentiment": ["duplicates.tsv", "errors.tsv"],
                "language": ["duplicates.tsv", "samples.tsv", "unexpected.tsv"],
            }[task]
        )
        for path in (*(reports / "tables").iterdir(), *(reports / "plots").iterdir()):
            assert all(None not in row.values() for row in read_table(path)), path
    rows = list(read_table(workflow.root / "reports/translation/tables/sentences.tsv"))
    scores = [float(row["chrf"]) for row in rows if row["split"] == "test" and row["kind"] == "worst"]
    assert len(scores) == 20
    assert scores == sorted(scores)
    errors = list(read_table(workflow.root / "reports/sentiment/tables/errors.tsv"))
    assert errors
    assert all(row["label"] != row["prediction"] for row in errors)


@pytest.mark.stress  # the whole workflow exports greedy search as it was evaluated
@pytest.mark.parametrize("method", ["beam", "sample"])
def test_every_method_is_exported_as_it_was_evaluated(restored: Clone, method: str) -> None:
    restored.change({"translation.evaluate.method": method, "translation.evaluate.beam_size": 3})
    assert restored.repro("export@translation") == ["evaluate@translation", "export@translation"]
    figures = without_digest(restored.root / "reports/translation/evaluation.json")
    predictions = (restored.root / "reports/translation/predictions.tsv").read_bytes()
    restored.change({"translation.evaluate.batch_size": 3})
    restored.repro("evaluate@translation")
    assert without_digest(restored.root / "reports/translation/evaluation.json") == figures
    assert (restored.root / "reports/translation/predictions.tsv").read_bytes() == predictions


def test_a_stage_with_a_bad_parameter_ends_in_one_line(restored: Clone) -> None:
    restored.change({"sentiment.tokenize.kind": "magic"})
    done = restored.run("python", "-m", "stages.tokenize", "sentiment", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: tokenize@sentiment: params.yaml: `sentiment.tokenize.kind`")
    assert len(done.stderr.strip().splitlines()) == 1
