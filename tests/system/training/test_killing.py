"""Real training runs killed at random moments and restarted give the same bytes as an uninterrupted one."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.training.small import ROOT, prepare, smoke

CASES: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "translation": (
        "translation",
        {
            "download": {"sample_rows": {"train": 200, "validation": 20, "test": 10}},
            "tokenize": {"kind": "none"},
            "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.1},
            "train": {"epochs": 6, "batch_size": 32, "averaging": "ema", "ema_decay": 0.9, "patience": None},
        },
    ),
    "sentiment": (
        "sentiment",
        {
            "download": {"sample_rows": {"train": 600, "validation": 50, "test": 10}},
            "train": {"epochs": 8, "batch_size": 32, "averaging": "last", "average_epochs": 3, "patience": None},
        },
    ),
}


def kill(case: str, kills: int, folder: Path) -> dict[str, float]:
    """Kill training runs `kills` times; a failure names the seed of the moments."""
    task, changes = CASES[case]
    content = smoke(task, changes)
    content["runtime"] |= {"tracking": False, "save_every": 0.01}
    prepare(content, task, folder / "data" / task)
    with (folder / "params.yaml").open("w") as stream:
        YAML().dump(content, stream)
    seed = random.randrange(10**6)
    command = ("python", "-m", "tests.system.training.killing", task, str(kills), str(seed))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]}"
    result: dict[str, float] = json.loads(done.stdout)
    return result


def test_killed_trainings_end_with_the_same_bytes(tmp_path: Path) -> None:
    counts = kill("translation", 2, tmp_path)
    assert counts["killed"] == 2
    assert counts["states_taken"] >= 1


@pytest.mark.parametrize("case", CASES)
def test_trainings_that_are_killed_many_times_end_with_the_same_bytes(case: str, tmp_path: Path) -> None:
    counts = kill(case, 30, tmp_path)
    print(counts)
    assert counts["killed"] == 30
    assert counts["states_taken"] >= 10
