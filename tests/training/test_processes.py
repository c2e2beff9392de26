"""What each of several training processes is given."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.line import CPU
from tests.training.small import smoke
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.families.classifier import train
from transformer.training import stage


@pytest.fixture
def params() -> train.Params:
    content = smoke("sentiment", {"train": {"shards": 4, "epochs": 1}})
    return stage_params(content, "sentiment", train.Params, where=Path("smoke"))


@pytest.mark.parametrize(("gpus", "word"), [(1, "1 GPU"), (2, "2 GPUs")])
def test_more_processes_than_gpus_are_refused_before_any_starts(
    gpus: int, word: str, params: train.Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    runtime = params.runtime.model_copy(update={"trainers": 4})
    several = params.model_copy(update={"runtime": runtime})
    with pytest.raises(UserError, match=f"^runtime.trainers is 4, and this machine has {word}: lower it$"):
        stage._team(several, lambda: None, replace(CPU, device=torch.device("cuda")), Observer())  # type: ignore[arg-type,return-value]
