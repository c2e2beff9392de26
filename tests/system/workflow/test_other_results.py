"""More of the results of the real workflow, for `make stress`: each case runs stages again.

Above each test stands what `make test` has in its place.
"""

import re

import pytest

from tests.conftest import Clone
from tests.kit import TASKS
from tests.system.workflow.rows import rows
from transformer.core.files import read_json

pytestmark = pytest.mark.stress
NEVER_RUN = {
    "download.seed": "download",
    "tokenize.lowercase": "tokenize",
    "vocab.min_frequency": "build_vocab",
    "train.learning_rate": "train",
    "evaluate.max_length": "evaluate",
}
"""A leaf of each stage."""


# tests/system/tracking/test_runs.py does the same with a tiny pipeline
def test_another_evaluation_adds_one_row(restored: Clone) -> None:
    restored.run("transformer", "sync")
    before = rows(restored)
    assert restored.repro() == []
    assert rows(restored) == before
    restored.change({"translation.evaluate.max_length": 9, "runtime.tracking": True})
    stages = ("figures", "evaluate", "export", "convert", "report")
    assert sorted(restored.repro()) == sorted(f"{stage}@translation" for stage in stages)
    added = [row for row in rows(restored) if row not in before]
    assert len(added) == 1
    assert added[0]["name"] == f"evaluate.max_length=9 {added[0]['tags']['key'][:8]}"
    compared = restored.run("transformer", "compare", "HEAD", "--task", "translation", "--markdown").stdout
    assert re.search(r"\| translation\.evaluate\.max_length +\| \d+ +\| 9 +\|", compared)
    assert re.search(r"\| test +\| chrf +\|( -?[\d.]+ +\|){2} [-+][\d.]+ +\| \S+ to \S+ +\| [01]\.\d{3} \|", compared)
    assert "**Code:** the same" in compared
    assert len(added[0]["curves"]["train_loss"]) >= 2


# tests/inference/test_decode.py compares batch sizes without the workflow
def test_evaluation_does_not_depend_on_the_batch_size(restored: Clone) -> None:
    """Another order of sums may change the last of the probabilities' six decimals."""
    before = {task: read_json(restored.root / f"reports/{task}/evaluation.json") for task in TASKS}
    restored.change({"translation.evaluate.batch_size": 3, "sentiment.evaluate.batch_size": 7})
    restored.repro("evaluate@translation", "evaluate@sentiment")
    for task, metrics in before.items():
        found = read_json(restored.root / f"reports/{task}/evaluation.json")
        assert found.pop("signatures", {}).keys() == metrics.pop("signatures", {}).keys()
        assert found.keys() == metrics.keys()
        for split, figures in metrics.items():
            assert found[split] == pytest.approx(figures, abs=2e-6), (task, split)


# tests/evaluation/test_baseline.py compares without the workflow
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


# tests/workflow/test_finding.py has the same without a pipeline
@pytest.mark.parametrize("leaf", list(NEVER_RUN))
def test_parameters_that_were_never_run_make_no_result(restored: Clone, leaf: str) -> None:
    """Like `dvc exp save`, `dvc commit --force` writes the current parameters into dvc.lock."""
    before = rows(restored)
    restored.change({f"translation.{leaf}": 3})
    restored.run("dvc", "commit", "--force")
    said = restored.run("transformer", "compare", "HEAD", "--task", "translation", check=False).stderr
    stage = NEVER_RUN[leaf]
    assert f"{stage} never ran with the parameters in dvc.lock" in said
    assert f"{stage} never ran with the parameters" in restored.run("transformer", "sync").stderr
    assert rows(restored) == before


# the whole workflow exports greedy search as it was evaluated
@pytest.mark.parametrize("method", ["beam", "sample"])
def test_every_method_is_exported_as_it_was_evaluated(restored: Clone, method: str) -> None:
    restored.change({"translation.evaluate.method": method, "translation.evaluate.beam_size": 3})
    assert restored.repro("export@translation") == ["evaluate@translation", "export@translation"]
    figures = (restored.root / "reports/translation/evaluation.json").read_bytes()
    predictions = (restored.root / "reports/translation/predictions.tsv").read_bytes()
    restored.change({"translation.evaluate.batch_size": 3})
    restored.repro("evaluate@translation")
    assert (restored.root / "reports/translation/evaluation.json").read_bytes() == figures
    assert (restored.root / "reports/translation/predictions.tsv").read_bytes() == predictions
