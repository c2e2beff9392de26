"""What a run shows: names, parameters, metrics; and which pipelines are one result."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Param, RunTag

from tests.kit import git
from transformer.core.files import write_json
from transformer.workflow.mlflow import Store, place_alias
from transformer.workflow.pipeline import OPTIONAL, REQUIRED, STAGES, Pipeline, Stage, pipelines
from transformer.workflow.run import (
    changes,
    current_origin,
    hyperparameters,
    metrics,
    registered_name,
    safe,
    safe_names,
    storable,
)

PARAMS: dict[str, dict[str, Any]] = {
    "download": {"source": "sample", "path": "data/local/x", "repository": "a/multi30k"},
    "tokenize": {"source": "de", "target": "en"},
    "build_vocab": {"min_frequency": 2, "path": "data/local/none"},
    "train": {"learning_rate": 1e-3, "batch_size": 32, "epochs": 4, "warmup": 7, "seed": 1, "shards": 1},
    "evaluate": {"batch_size": 64},
    "export": {"registered_name": None, "alias": "best"},
    "convert": {"formats": []},
}
SECTIONS = {"build_vocab": "vocab"}


def pipeline(**changed: Any) -> Pipeline:
    """A result; changed: parameters of `train`."""
    stages: dict[str, Stage] = {}
    above: Mapping[str, str] = {}
    for name in STAGES:
        section = PARAMS.get(name, {}) | (changed if name == "train" else {})
        params = {f"translation.{SECTIONS.get(name, name)}": section} if name in PARAMS else {}
        stages[name] = Stage(params, dict(above), {f"out/{name}": name})
        above = above if name in OPTIONAL else stages[name].outs
    return Pipeline("translation", stages)


def lock_of(found: Pipeline) -> bytes:
    stages = {
        f"{name}@{found.task}": {
            "params": {"params.yaml": stage.params},
            "deps": [{"path": path, "md5": md5} for path, md5 in stage.deps.items()],
            "outs": [{"path": path, "md5": md5} for path, md5 in stage.outs.items()],
        }
        for name, stage in found.stages.items()
    }
    return json.dumps({"schema": "2.0", "stages": stages}).encode()


def test_a_pipeline_is_read_as_it_is_locked() -> None:
    (found,) = pipelines(lock_of(pipeline()), "a lock")
    assert found == pipeline() and found.complete and not found.stale
    assert pipelines(b"", "an empty lock") == ()


def with_stage(name: str, **changes: Any) -> Pipeline:
    """The result with one stage changed."""
    stages = pipeline().stages
    return Pipeline("translation", {**stages, name: replace(stages[name], **changes)})


@pytest.mark.parametrize("name", REQUIRED)
def test_a_result_lacks_no_stage_and_each_read_what_those_above_wrote(name: str) -> None:
    below = REQUIRED[REQUIRED.index(name) :]
    lacking = Pipeline("translation", {each: stage for each, stage in pipeline().stages.items() if each != name})
    assert lacking.stale == below and f"{name} has not run" in lacking.why_partial("main")
    if name != "export":
        (found,) = pipelines(lock_of(with_stage(name, outs={f"out/{name}": "other"})), "a lock")
        assert found.stale == below[1:]


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_was_made_of_another_result_is_not_of_this_one(name: str) -> None:
    deps = dict.fromkeys(pipeline().stages[name].deps, "other")
    (found,) = pipelines(lock_of(with_stage(name, deps=deps)), "a lock")
    assert name not in found.stages and not found.stale and not found.complete


def test_parameters_that_two_stages_declare_must_be_the_same() -> None:
    stages = pipeline().stages
    other = {"translation.train": {**stages["train"].params["translation.train"], "epochs": 9}}
    changed = with_stage("evaluate", params={**stages["evaluate"].params, **other})
    (found,) = pipelines(lock_of(changed), "a lock")
    assert found.stale == ("evaluate", "export")


def test_the_key_is_of_parameters_and_outputs_but_not_of_figures_and_code() -> None:
    key = pipeline().key
    assert key == pipeline(epochs=4.0).key, "DVC treats 4 and 4.0 as equal"
    elsewhere = {"translation.download": PARAMS["download"] | {"path": "/elsewhere"}}
    assert with_stage("download", params=elsewhere).key == key, "the same corpus from another place"
    assert with_stage("figures", outs={"out/figures": "other"}).key == key
    assert with_stage("train", deps={**pipeline().stages["train"].deps, "code.json": "x"}, ran="y").key == key
    others = [with_stage(name, outs={f"out/{name}": "other"}).key for name in STAGES if name != "figures"]
    assert len({key, pipeline(epochs=5).key, *others}) == 2 + len(others)


def test_changes_are_named_shortly_and_at_most_four() -> None:
    committed = {"translation": {name.partition(".")[2]: value for name, value in pipeline().params.items()}}
    assert changes(pipeline(), committed) == [] == changes(pipeline(epochs=5), {})
    assert changes(pipeline(batch_size=64), committed) == ["train.batch_size=64"], "`evaluate` has one, too"
    many = pipeline(epochs=5, learning_rate=2e-4, warmup=0, seed=2, shards=4)
    assert changes(many, committed) == ["epochs=5", "learning_rate=0.0002", "seed=2", "shards=4", "+1"]


def test_places_on_a_machine_are_no_hyperparameters() -> None:
    found = hyperparameters("translation", pipeline().params)
    assert found["vocab.min_frequency"] == 2
    assert found["download.source"] == "sample"
    assert not [name for name in found if "path" in name or "repository" in name or name.startswith("export")]


@pytest.mark.parametrize(
    ("download", "name"),
    [
        ({}, "translation-de-en-sample"),
        ({"source": "hub"}, "translation-de-en-multi30k"),
        ({"source": "hub", "configuration": "v 2"}, "translation-de-en-multi30k-v-2"),
        ({"source": "files", "path": "/corpora/Über uns/"}, "translation-de-en-Über-uns"),
        ({"source": "files", "path": "/"}, "translation-de-en-local"),
    ],
)
def test_a_model_is_named_after_its_corpus(download: dict[str, Any], name: str) -> None:
    params = {"translation.download": PARAMS["download"] | download}
    assert registered_name(with_stage("download", params=params)) == name


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


def test_at_most_40_metrics_are_those_that_people_choose_by(tmp_path: Path) -> None:
    scores = {"bleu": 30.0, "chrf": 50.0, "perplexity": 7.0, "bleu_low": 29.0, "repetition": 0.1, "sentences": 500}
    splits = [f"test_{number}" for number in range(20)]
    of_splits = dict.fromkeys(["test", "validation", *splits], scores)
    training = {"parameters": 100, "epochs": 2, "best_epoch": 2, "steps": 9, "device": "cpu"}
    write_json(tmp_path / "evaluation.json", of_splits | {"signatures": {}})
    write_json(tmp_path / "training.json", training)
    (tmp_path / "history.tsv").write_text("epoch\tstep\ttrain_loss\tvalidation_loss\n1\t5\t2.0\t\n2\t9\t1.0\t1.5\n")
    found = metrics("translation", tmp_path)
    assert len(found) == 38, "the curves have two more"
    first = [f"{split}.{name}" for split in ("test", "validation", "test_0") for name in ("bleu", "chrf", "perplexity")]
    assert [*found][:9] == first
    write_json(tmp_path / "evaluation.json", dict.fromkeys(["test", "validation"], scores) | {"signatures": {}})
    assert [*metrics("translation", tmp_path)][6:] == ["parameters", "steps", "epochs", "best_epoch"]


def version(store: Store, value: float, made: int, **group: str) -> str:
    """Register a version of the model `m`."""
    if not store.client.search_registered_models():
        store.client.create_registered_model("m")
    run_id = store.client.create_run(store.experiment_id).info.run_id
    tags = {"key": str(made), "alias": "best", "value": str(value), "higher_is_better": "true", "made": str(made)}
    tags["group"] = json.dumps({"validation texts": "v", "metric": "validation.bleu"} | group)
    return str(store.client.create_model_version("m", "/x", run_id, tags).version)


def best(store: Store) -> str:
    place_alias(store.client, "m", "best")
    return str(store.client.get_model_version_by_alias("m", "best").version)


def test_the_alias_compares_like_with_like(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = version(store, 30.0, made=2), version(store, 29.0, made=3)
    assert best(store) == first, "the better one"
    earlier = version(store, 30.0, made=1)
    assert best(store) == earlier, "of equal ones the older, in whatever order they are registered"
    other = version(store, 10.0, made=4, **{"validation texts": "w"})
    assert capsys.readouterr().out == ""
    assert best(store) == other, "the newest result is on other texts, where it is the best"
    said = f"m@best moved from version {earlier} to {other}, whose validation texts are others"
    assert said in capsys.readouterr().out
    store.client.delete_run(str(store.client.get_model_version("m", other).run_id))
    assert best(store) == earlier, "a deleted run does not count"


def test_code_that_was_not_committed_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    module = tmp_path / "transformer" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "code")
    assert not current_origin(tmp_path).dirty
    module.write_text("x = 2\n")
    assert current_origin(tmp_path).dirty
    assert current_origin(tmp_path).commit == git(tmp_path, "rev-parse", "HEAD").strip()
