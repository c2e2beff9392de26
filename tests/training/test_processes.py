"""What each of several training processes is given."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.line import CPU
from tests.training.small import own_torch_settings, prepare, smoke
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import open_task
from transformer.families.classifier import train
from transformer.training import stage
from transformer.training.team import Single


@pytest.fixture
def params(tmp_path: Path) -> train.Params:
    content = smoke("sentiment", {"train": {"shards": 4, "epochs": 1}})
    content["hardware"] |= {"device": "auto", "precision": "auto"}
    return stage_params(content, "sentiment", train.Params, where=Path("smoke"))


def test_what_auto_is_here_is_what_it_is_in_every_process(
    params: train.Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that chose another precision would add its gradients to these in silence."""
    given: list[Any] = []

    def team(params: Any, opening: Any, compute: Any, observer: Any) -> Any:
        given.extend([opening.args[1].hardware, compute])
        return nullcontext(Single())

    monkeypatch.setattr(stage, "_team", team)
    prepare(smoke("sentiment", {}), "sentiment", tmp_path / "sentiment")
    paths = stage.TrainingPaths(
        encoded=tmp_path / "sentiment" / "encoded",
        vocab=tmp_path / "sentiment" / "vocab",
        trained=tmp_path / "trained",
        metrics=tmp_path / "metrics.json",
        history=tmp_path / "history.tsv",
        updates=tmp_path / "updates.tsv",
    )
    with own_torch_settings():
        train.run(open_task("sentiment"), params, paths=paths, observer=Observer())
    hardware, compute = given
    assert (hardware.device, hardware.precision) == (compute.device.type, compute.precision)
    assert hardware.threads == params.hardware.threads


@pytest.mark.parametrize(("gpus", "word"), [(1, "1 GPU"), (2, "2 GPUs")])
def test_more_processes_than_gpus_are_refused_before_any_starts(
    gpus: int, word: str, params: train.Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    runtime = params.runtime.model_copy(update={"trainers": 4})
    several = params.model_copy(update={"runtime": runtime})
    with pytest.raises(UserError, match=f"^runtime.trainers is 4, and this machine has {word}: lower it$"):
        stage._team(several, lambda: None, replace(CPU, device=torch.device("cuda")), Observer())  # type: ignore[arg-type,return-value]
