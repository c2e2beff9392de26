import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import transformer
from transformer.tracking.model import log_model, register, versions_of
from transformer.tracking.store import Store, open_store


@pytest.fixture
def store(root: Path) -> Store:
    return open_store(root, "sentiment")


def bundle_of(folder: Path, value: float, *, higher_is_better: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    metric = {"name": "validation.accuracy", "value": value, "higher_is_better": higher_is_better}
    (folder / "config.json").write_text(json.dumps({"task": "sentiment", "main_metric": metric}))
    return folder


def add(store: Store, name: str, key: str, bundle: Path) -> None:
    run = store.client.create_run(store.experiment_id).info.run_id
    model = store.client.create_logged_model(store.experiment_id, source_run_id=run).model_id
    register(store.client, name=name, alias="best", row_key=key, run_id=run, model_id=model, bundle=bundle)


def best(store: Store, name: str) -> str:
    return str(store.client.get_model_version_by_alias(name, "best").tags["row_key"])


def test_the_alias_moves_to_a_better_version_only(store: Store, root: Path) -> None:
    steps = [("a", 0.5, "a"), ("b", 0.4, "a"), ("c", 0.6, "c"), ("d", 0.6, "c"), ("c", 0.9, "c")]
    for key, value, expected in steps:
        add(store, "reviews", key, bundle_of(root / "bundle", value))
        assert best(store, "reviews") == expected
    assert len([*store.client.search_model_versions("name = 'reviews'")]) == 4
    (version,) = versions_of(store.client, "reviews", "d")
    assert version.tags == {"row_key": "d", "validation.accuracy": "0.6"}


def test_lower_may_be_better(store: Store, root: Path) -> None:
    for key, value, expected in [("a", 0.5, "a"), ("b", 0.6, "a"), ("c", 0.4, "c")]:
        add(store, "losses", key, bundle_of(root / "bundle", value, higher_is_better=False))
        assert best(store, "losses") == expected


@dataclass
class Prediction:
    label: str
    probability: float


class Reviewer:
    def classify(self, texts: list[str]) -> list[Prediction]:
        return [Prediction("pos" if "good" in text else "neg", 0.75) for text in texts]


def test_the_logged_model_loads_and_predicts(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import pyfunc

    run = store.client.create_run(store.experiment_id).info.run_id
    model_id = log_model(store, run, bundle_of(root / "bundle", 0.5))
    location = root / "mlartifacts" / "models" / model_id / "artifacts"
    assert (location / "code" / "transformer" / "export" / "pyfunc.py").is_file()
    assert not [*location.rglob("__pycache__")]
    opened: list[Path] = []

    def load(path: str) -> Reviewer:
        opened.append(Path(path))
        return Reviewer()

    monkeypatch.setattr(transformer, "load", load)
    model = pyfunc.load_model(store.client.get_logged_model(model_id).artifact_location)

    answers = model.predict(pd.DataFrame({"text": ["good", "bad"]}))
    assert answers.to_dict("list") == {"label": ["pos", "neg"], "probability": [0.75, 0.75]}
    assert list(model.predict({"text": ["good"]})["label"]) == ["pos"]
    assert model.metadata.signature.inputs.input_names() == ["text"]
    assert model.metadata.signature.outputs.input_names() == ["label", "probability"]
    assert (opened[0] / "config.json").is_file()
    assert "torch==" in (location / "requirements.txt").read_text()
    outputs = store.client.get_run(run).outputs
    assert outputs is not None and [output.model_id for output in outputs.model_outputs] == [model_id]
