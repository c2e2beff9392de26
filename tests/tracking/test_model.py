import json
import math
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import transformer
from transformer.export.converted import bundle_digest, engines_of
from transformer.tracking.artifacts import let_replace
from transformer.tracking.model import log_converted, log_model, log_model_files, register, save_model, versions_of
from transformer.tracking.store import Store


def result_in(folder: Path) -> Path:
    """A folder with a bundle and its answers."""
    bundle, reports = folder / "models" / "sentiment" / "bundle", folder / "reports" / "sentiment"
    bundle.mkdir(parents=True)
    (bundle / "config.json").write_text(
        json.dumps({"format": 1, "task": "sentiment", "family": "classifier", "decoding": {}})
    )
    (bundle / "pretokenizer.json").write_text("{}")
    reports.mkdir(parents=True)
    (reports / "predictions.tsv").write_text("split\ttext\nvalidation\tgood\n")
    return folder


class Classifier:
    def table(self, texts: list[str]) -> dict[str, list[Any]]:
        return {"label": ["pos" if "good" in text else "neg" for text in texts], "probability": [0.75] * len(texts)}


def test_the_logged_model_loads_and_predicts(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import pyfunc

    run = store.client.create_run(store.experiment_id).info.run_id
    model_id = log_model(store, run, result_in(root / "result"), "sentiment")
    location = root / "mlartifacts" / "models" / model_id / "artifacts"
    assert (location / "code" / "transformer" / "export" / "pyfunc.py").is_file()
    assert not [*location.rglob("__pycache__")]
    opened: list[Path] = []

    def load(path: Path, engine: str) -> Classifier:
        opened.append(path / engine)
        return Classifier()

    monkeypatch.setattr(transformer, "load", load)
    model = pyfunc.load_model(store.client.get_logged_model(model_id).artifact_location)

    answers = model.predict(pd.DataFrame({"text": ["good", "bad"]}))
    assert answers.to_dict("list") == {"label": ["pos", "neg"], "probability": [0.75, 0.75]}
    assert list(model.predict({"text": ["good"]})["label"]) == ["pos"]
    assert model.metadata.signature.inputs.input_names() == ["text"]
    assert model.metadata.signature.outputs.input_names() == ["label", "probability"]
    assert model.metadata.signature.params.to_dict() == [
        {"name": "engine", "type": "string", "default": "best", "shape": None}
    ]
    assert opened == [location / "artifacts" / "bundle" / "torch"], "once, by the first request"
    assert model.input_example.to_dict("list") == {"text": ["good"]}
    required = (location / "requirements.txt").read_text()
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = [each.partition(">")[0] for each in project["dependencies"]]
    assert [name for name in names if f"{name}==" not in required] == ["spacy"]
    outputs = store.client.get_run(run).outputs
    assert outputs is not None and [output.model_id for output in outputs.model_outputs] == [model_id]


def test_a_version_is_the_logged_model_that_is_there(store: Store, root: Path) -> None:
    """One that was deleted answers until `mlflow gc`, and then no more."""
    result, run = result_in(root / "result"), store.client.create_run(store.experiment_id).info.run_id
    tags = {"row_key": "key", "task": "sentiment"}

    def registered(model_id: str) -> list[str]:
        register(store.client, name="name", alias="best", tags=tags, run_id=run, model_id=model_id)
        return [version.source for version in versions_of(store.client, "name", "key")]

    first, second = (log_model(store, run, result, "sentiment") for _ in range(2))
    assert registered(first) == registered(first) == [f"models:/{first}"]
    assert registered(second) == registered(second) == [f"models:/{second}"]


def test_outside_of_mlflow_s_server_no_answer_is_overdue(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import pyfunc

    save_model(root / "model", result_in(root / "result") / "models" / "sentiment" / "bundle", "sentiment")
    seconds = []
    for name in ("elsewhere", "mlflow.pyfunc.scoring_server.app"):
        monkeypatch.setitem(sys.modules, name, sys)
        served = pyfunc.load_model(str(root / "model")).unwrap_python_model()
        seconds.append(served.serving._seconds)
    assert seconds == [math.inf, 61.0]


@pytest.mark.parametrize(("rules", "needed"), [({"de": {}}, False), ({}, True), ({"en": {}}, True)])
def test_spacy_is_required_where_a_bundle_lacks_a_language_s_rules(
    rules: dict[str, Any], needed: bool, root: Path
) -> None:
    bundle = result_in(root / "result") / "models" / "sentiment" / "bundle"
    side = {"kind": "spacy", "language": "de", "lowercase": True, "html_breaks": "keep"}
    (bundle / "pretokenizer.json").write_text(json.dumps({"text": side}))
    (bundle / "rules.json").write_text(json.dumps(rules))
    save_model(root / "model", bundle, "sentiment")
    assert ("spacy==" in (root / "model" / "requirements.txt").read_text()) is needed


def test_converted_models_bring_the_bundle_that_they_are_of(store: Store, root: Path) -> None:
    """The row may have another bundle, as other code exported it: no key includes it."""
    result, run = result_in(root / "result"), store.client.create_run(store.experiment_id).info.run_id
    model_id = log_model(store, run, result, "sentiment")
    logged = store.client.get_logged_model(model_id)
    bundle, converted = (result / "models" / "sentiment" / name for name in ("bundle", "converted"))
    (bundle / "rules.json").write_text("{}")
    (converted / "onnx").mkdir(parents=True)
    (converted / "onnx" / "config.json").write_text(json.dumps({"made_from": bundle_digest(bundle)}))
    log_converted(store, run, logged, result, "sentiment")
    log_converted(store, run, logged, result, "sentiment")
    artifacts = root / "mlartifacts" / "models" / model_id / "artifacts" / "artifacts"
    assert engines_of(artifacts / "bundle") == ["onnx"]
    shutil.rmtree(converted)
    log_converted(store, run, logged, result, "sentiment")  # `convert.formats: []`
    assert engines_of(artifacts / "bundle") == []


def test_read_only_files_are_written_again(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in DVC's cache are, and so are MLflow's copies. Whoever is not root could not open them."""
    result, run = result_in(root / "result"), store.client.create_run(store.experiment_id).info.run_id
    for path in (result / "models").rglob("*.json"):
        path.chmod(0o444)
    logged = store.client.get_logged_model(log_model(store, run, result, "sentiment"))
    folder = root / "mlartifacts" / "models" / logged.model_id / "artifacts"
    modes: list[int] = []
    write = store.client.log_model_artifacts

    def spied(*arguments: Any) -> None:
        modes.extend(path.stat().st_mode & 0o200 for path in folder.rglob("*") if path.is_file())
        write(*arguments)

    monkeypatch.setattr(store.client, "log_model_artifacts", spied)
    log_model_files(store, run, logged, result, "sentiment")
    assert modes and all(modes)


def test_a_view_is_written_as_a_whole_and_other_files_stay(tmp_path: Path) -> None:
    figures, scores = tmp_path / "reports" / "figures" / "old.svg", tmp_path / "reports" / "scores.json"
    figures.parent.mkdir(parents=True)
    for path in (figures, scores):
        path.touch(0o444)
    for uri in (tmp_path.as_uri(), str(tmp_path), "s3://elsewhere/reports", None):
        let_replace(uri, "reports/figures")
    assert not figures.exists()
    assert scores.stat().st_mode & 0o200
