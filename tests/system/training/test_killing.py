"""Real training runs killed at any moment and restarted give the same bytes as an uninterrupted one."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.system.training.running import running, trained, wait_for, written

CHANGES: dict[str, Any] = {
    "tokenize": {"kind": "none"},
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.1},
    "train": {"epochs": 20, "batch_size": 32, "averaging": "ema", "ema_decay": 0.9},
}


def moments(root: Path) -> list[Callable[[], Any]]:
    """When to kill: with a checkpoint, while one is written, at some time, and while the results are written."""
    start = time.monotonic()
    return [
        lambda: [*(root / ".dvc/tmp/resume").rglob("*.safetensors")],
        lambda: [*(root / ".dvc").rglob("*.part")],
        lambda: time.monotonic() > start + 5,
        lambda: [*(root / "models").rglob("*")],
    ]


def killed(root: Path, task: str, moment: Callable[[], Any]) -> str:
    """Start a training and kill it at this moment, unless it ends before; returns what it said."""
    with running(root, sys.executable, "-m", "stages.train", task) as process:
        wait_for(lambda: moment() or process.poll() is not None)
        process.kill()
        return process.communicate()[1]


def test_killed_trainings_end_with_the_same_bytes(tmp_path: Path) -> None:
    task, said = written(tmp_path, "translation", CHANGES, save_every=0.01), ""
    expected = trained(tmp_path, task)
    for path in (tmp_path / "models", tmp_path / "reports"):
        path.rename(tmp_path / f"{path.name} without kills")
    for number in range(4):
        said += killed(tmp_path, task, moments(tmp_path)[number])
    assert trained(tmp_path, task) == expected
    assert "resuming after step" in said
