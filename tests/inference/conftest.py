"""Small exported models."""

from pathlib import Path
from typing import Any

import pytest

from tests.inference.converting import Conversion
from tests.kit import TASKS
from tests.training.small import prepare, smoke, train
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import open_task
from transformer.inference.bundle import write_bundle

ROWS: dict[str, dict[str, Any]] = {
    "download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}},
    "train": {"epochs": 1},
}


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One bundle per task, after one epoch on a part of the sample corpus."""
    found = {}
    for task in TASKS:
        root = tmp_path_factory.mktemp(task)
        content = smoke(task, ROWS)
        prepare(content, task, root / "data")
        train(content, task, root / "data", root, observer=Observer())
        params: Any = stage_params(content, task, open_task(task).family.stage("export").Params, where=Path("smoke"))
        found[task] = root / "bundle"
        write_bundle(
            found[task],
            open_task(task),
            trained=root / "models" / task / "trained",
            vocab=root / "data" / "vocab",
            tokens=root / "data" / "tokens",
            card="",
            config={"decoding": params.evaluate.model_dump()},
        )
    return found


@pytest.fixture(scope="session", params=["translation-transformer", "sentiment-transformer"])
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Conversion:
    """A converted model of each family."""
    conversion = Conversion(request.param, tmp_path_factory.mktemp(request.param))
    conversion.run()
    return conversion
