"""Training in several processes: the same bytes as in one, whoever starts them, and one line when one is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit import ROOT, free_port
from tests.system.training.running import change, running, trained, wait_for, written
from tests.training.small import outputs

PAIRS: dict[str, Any] = {
    "tokenize": {"kind": "none"},
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.2},
    "train": {
        **{"batch_unit": "tokens", "batch_size": 300, "accumulation": 2, "word_dropout": 0.2, "r_drop": 1.0},
        **{"bidirectional_epochs": 1, "consistency_from": 2, "averaging": "ema"},
    },
}


def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    task = written(tmp_path, "translation", PAIRS)
    found = []
    for trainers in (1, 2, 4):
        change(tmp_path, trainers=trainers)
        found.append(trained(tmp_path, task))
    assert found[0] == found[1] == found[2]


def test_torchrun_starts_them_on_several_machines(tmp_path: Path) -> None:
    """Two agents, as two machines have them, on this one."""
    task = written(tmp_path)
    alone = trained(tmp_path, task)
    shared = ("-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1")
    port = f"--master-port={free_port()}"
    first, second = (
        (sys.executable, *shared, port, f"--node-rank={number}", "-m", "stages.train", task) for number in (0, 1)
    )
    with running(tmp_path, *first) as one, running(tmp_path, *second) as two:
        assert [process.wait(120) for process in (one, two)] == [0, 0]
    assert outputs(tmp_path / "models") | outputs(tmp_path / "reports") == alone


@pytest.mark.parametrize("end", ["stopped", "lost"])
def test_an_interrupted_training_resumes_on_another_number_of_processes(end: str, tmp_path: Path) -> None:
    task = written(tmp_path, changes={"train": {"epochs": 12}}, save_every=0.01)
    alone = trained(tmp_path, task)
    (tmp_path / ".dvc").mkdir(exist_ok=True)
    change(tmp_path, trainers=2)
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        wait_for(lambda: [*(tmp_path / ".dvc/tmp/resume" / task).rglob("*.safetensors")])
        (other,) = psutil.Process(process.pid).children()
        connections = [c for p in (other, psutil.Process(process.pid)) for c in p.net_connections()]
        listening = {c.laddr.ip.removeprefix("::ffff:") for c in connections if c.status == "LISTEN"}
        assert listening <= {"127.0.0.1", "::1"}, "open to other machines"
        if end == "stopped":
            os.killpg(process.pid, signal.SIGINT)
        else:
            other.kill()
        _, said = process.communicate(timeout=60)
        _, alive = psutil.wait_procs([other], timeout=30)
        assert not alive
    last = said.strip().splitlines()[-1]
    if end == "lost":
        assert process.returncode == 1 and "a training process was lost at step" in last, said
        assert "lower runtime.trainers, and run it again to resume" in last
    else:
        assert process.returncode == 130 and "run it again to resume from there" in last, said
    change(tmp_path, trainers=1 if end == "lost" else 4)
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0 and "resuming after step" in said, said
    assert outputs(tmp_path / "models") | outputs(tmp_path / "reports") == alone


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("nonfinite", "the loss or a gradient is not finite at step 2: skipped"),
        ("memory", "out of memory: every batch is split into 2 from now on"),
        ("failing", "not finite at step 2 (epoch 1, update 2)"),
    ],
)
def test_what_to_do_with_trouble_is_decided_together(kind: str, line: str) -> None:
    """Also where only another process has it."""
    command = [sys.executable, "-m", "tests.system.training.together", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if kind == "failing":
        assert line in found["error"]
        return
    assert f"warning: {line}" in found["lines"]
    assert found["together"] == found["alone"]


NO_ROOM = "if 'RANK' in os.environ: sys.exit('error: no room for it')\nmain('train')\n"
EDITED = """
file = Path('params.yaml')
if 'RANK' in os.environ: file.write_text(file.read_text().replace('seed: ', 'seed: 1'))
main('train')
"""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (NO_ROOM, "a training process did not start: error: no room for it"),
        (EDITED, "have different parameters, inputs or code: run it again"),
    ],
    ids=["cannot start", "edited between the starts"],
)
def test_a_process_that_does_not_train_the_same_is_one_line(code: str, message: str, tmp_path: Path) -> None:
    task = written(tmp_path, trainers=2)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages/__init__.py").touch()
    imports = f"import os, sys\nfrom pathlib import Path\nsys.path.insert(0, {str(ROOT)!r})\n"
    (tmp_path / "stages/train.py").write_text(f"{imports}from transformer.workflow.stage import main\n{code}")
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.strip().splitlines()[-1].endswith(message), said
