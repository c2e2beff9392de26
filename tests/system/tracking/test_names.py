"""MLflow takes every name and value; one result that it does not take leaves the others alone."""

from pathlib import Path

from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from tests.system.tracking.conftest import run_in
from tests.system.tracking.runs import edit, sync
from transformer.workflow.mlflow import Store
from transformer.workflow.run import safe, safe_names, storable

NAMES = ["", ".", "..", "a/../b", "x" * 259, "x" * 260, "ham", "Ham", "\ud800", "a\0b\n", "../up", ".hidden"]


def test_any_name_is_one_of_a_parameter_metric_tag_and_version_tag(store: Store) -> None:
    names = safe_names(NAMES)
    assert len({name.casefold() for name in names.values()}) == len(NAMES), "databases may ignore case"
    values = safe(dict.fromkeys(NAMES, "\ud800\0" + "x" * 9000))
    run_id = store.client.create_run(store.experiment_id).info.run_id
    store.client.log_batch(
        run_id,
        metrics=[Metric(name, 1.0, 0, 0) for name in names.values()],
        params=[Param(*pair) for pair in values.items()],
        tags=[RunTag(*pair) for pair in values.items()],
    )
    store.client.create_registered_model("m")
    version = store.client.create_model_version("m", "/x", run_id, values)
    data = store.client.get_run(run_id).data
    assert {*data.metrics} == {*names.values()} and data.params == values == version.tags
    assert values.items() <= data.tags.items()
    assert storable({"a": "ß"}) == '{"a": "ß"}'


def test_a_result_that_mlflow_does_not_take_is_named_and_the_others_are_written(dvc_repository: Path) -> None:
    edit(dvc_repository, "tracking: true", "tracking: false")
    edit(dvc_repository, "registered_name: sentiment-model", "registered_name: a/b")
    label = "claims about water " * 20
    edit(dvc_repository, "schedule: null", f"schedule: null, class_weights: {{{label}: 1, other: 2}}")
    run_in(dvc_repository, "dvc", "repro")
    edit(dvc_repository, "bonus: 0", "bonus: 5")
    for line, written in (("sentiment of workspace: not recorded, since MLflow does not take it", 1), ("sentiment", 0)):
        *said, count = sync(dvc_repository).splitlines()
        assert count == f"{written} runs written" and [each for each in said if each.startswith(line)], said
    uri = f"sqlite:///{dvc_repository}/mlflow.db"
    store = MlflowClient(uri, uri)
    experiments = [each.experiment_id for each in store.search_experiments()]
    (run,) = store.search_runs(experiments, "attributes.status = 'FINISHED'")
    assert run.data.tags["task"] == "translation" and "train_loss" in run.data.metrics
    assert sum(name.startswith("train.class_weights.claims about water") for name in run.data.params) == 1
