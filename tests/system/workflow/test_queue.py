"""Several training runs at the same time from DVC's queue."""

import os
import subprocess
import time
from pathlib import Path
from subprocess import DEVNULL

from tests.conftest import Clone, make_clone
from transformer.training.resume import saved_checkpoints

SETTINGS = {
    "translation.download.sample_rows": {"train": 800, "validation": 20, "test": 10},
    "translation.tokenize.kind": "whitespace",
    "translation.train.epochs": 40,
    "translation.train.patience": None,
    "runtime.save_every": 0.01,
    "runtime.tracking": False,
}
TRAIN = "train@translation"
_SECONDS = 480


def newest(states: Path) -> dict[str, int]:
    """The number of the newest state, by training run."""
    found = {}
    for folder in states.iterdir() if states.is_dir() else ():
        if names := [path.name for path in saved_checkpoints(folder)]:
            found[folder.name] = int(names[0].partition(".")[0])
    return found


def finished(clone: Clone) -> int:
    """The number of experiments."""
    return len(clone.run("git", "for-each-ref", "refs/exps/*/*/own*").stdout.splitlines())


def test_queued_trainings_that_run_at_once_keep_their_states_and_finish(tmp_path: Path) -> None:
    jobs = 3
    clone = make_clone(tmp_path / "clone")
    clone.change(SETTINGS)
    clone.repro("build_vocab@translation")
    clone.commit("start")
    states = clone.root / ".dvc" / "tmp" / "resume" / "translation"
    for number in range(3):  # killed runs; together with them, a live run would exceed the number that is kept
        dead = states / f"dead{number}"
        dead.mkdir(parents=True)
        later = time.time() + 3600
        os.utime(dead, (later, later))
    for number in range(jobs):
        clone.run("dvc", "exp", "run", "--queue", "-n", f"own{number}", "-S", f"translation.train.seed={number}", TRAIN)
    start = ("dvc", "queue", "start", "-j", str(jobs))
    # No pipes: the workers would keep them open.
    subprocess.run(start, cwd=clone.root, env=clone.environment, stdout=DEVNULL, stderr=DEVNULL, check=True)
    seen: dict[str, int] = {}
    most, started = 0, time.monotonic()
    while finished(clone) < jobs:
        for _ in range(50):
            found = newest(states)
            # Each has two states, and a run that ends sometimes removes the newer one first.
            assert all(seen.get(name, 0) - 2 <= number for name, number in found.items()), "numbering restarted"
            seen |= found
            most = max(most, len(found))
            time.sleep(0.02)
        assert time.monotonic() - started < _SECONDS, clone.run("dvc", "queue", "status").stdout
    assert most == jobs, "they ran at the same time"
    assert len(seen) == jobs
    assert sorted(path.name for path in states.iterdir()) == ["dead0", "dead1", "dead2"]
    status = clone.run("dvc", "queue", "status").stdout
    assert status.count("Success") == jobs, status
