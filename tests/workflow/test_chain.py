"""The small chain of each family, end to end, as users run it: `dvc repro`, MLflow's runs, the commands, an edit."""

import re

import pytest

from tests.conftest import Clone
from tests.kit import TASKS
from transformer.core.files import read_json
from transformer.core.task import open_task
from transformer.workflow.mlflow import open_store
from transformer.workflow.results import results_at

FAMILIES = {
    "seq2seq": ("chrf", "translate", "Ein Mann schläft."),
    "classifier": ("accuracy", "classify", "A fine film."),
    "language": ("perplexity", "fill", "The [MASK] is hardly dull."),
}
"""A metric, and a command with a text."""


@pytest.mark.parametrize("task", TASKS)
def test_a_chain_ends_with_scores_a_page_a_run_and_a_model_that_answers(task: str, workflow: Clone) -> None:
    reports = workflow.root / "reports" / task
    scores = read_json(reports / "evaluation.json")["test"]
    main, command, text = FAMILIES[open_task(task).family.name]
    assert scores[f"{main}_low"] <= scores[main] <= scores[f"{main}_high"]
    page = (reports / "report.html").read_text(encoding="utf-8")
    assert re.search(r'class="headline">.* on test, 95 % interval [\d.]+.* to [\d.]+', page)

    result = results_at(workflow.root, "workspace", None).results[task]
    store = open_store(workflow.root, task)
    (run,) = store.client.search_runs([store.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.tags["key"] == result.pipeline.key
    assert run.data.metrics[f"test.{main}"] == pytest.approx(scores[main])
    assert {each.path for each in store.client.list_artifacts(run.info.run_id)} >= {"params.json", "reports"}

    assert workflow.run("transformer", command, "-m", f"models/{task}/bundle", text).stdout.strip()


def test_nothing_runs_twice_and_a_change_runs_what_it_affects(restored: Clone) -> None:
    assert restored.repro() == []
    lock = (restored.root / "dvc.lock").read_bytes()
    restored.change({"sentiment.evaluate.bootstrap_samples": 50})
    affected = ("figures", "evaluate", "export", "convert", "report")
    assert sorted(restored.repro()) == sorted(f"{stage}@sentiment" for stage in affected)
    compared = restored.run("transformer", "compare", "HEAD", "--task", "sentiment").stdout
    assert re.search(r"sentiment\.evaluate\.bootstrap_samples +\S+ +50", compared)
    restored.run("git", "checkout", "-q", "--", "params.yaml")
    restored.change({"runtime.tracking": False})
    assert restored.repro() == ["report@sentiment"]
    assert (restored.root / "dvc.lock").read_bytes() == lock
