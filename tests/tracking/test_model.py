import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import transformer
from transformer.tracking.model import log_model
from transformer.tracking.store import Store


def bundle_of(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"task": "sentiment"}))
    return folder


class Classifier:
    def table(self, texts: list[str]) -> dict[str, list[Any]]:
        return {"label": ["pos" if "good" in text else "neg" for text in texts], "probability": [0.75] * len(texts)}


def test_the_logged_model_loads_and_predicts(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import pyfunc

    run = store.client.create_run(store.experiment_id).info.run_id
    model_id = log_model(store, run, bundle_of(root / "bundle"))
    location = root / "mlartifacts" / "models" / model_id / "artifacts"
    assert (location / "code" / "transformer" / "export" / "pyfunc.py").is_file()
    assert not [*location.rglob("__pycache__")]
    opened: list[Path] = []

    def load(path: str) -> Classifier:
        opened.append(Path(path))
        return Classifier()

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
