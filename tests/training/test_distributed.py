"""Training in several processes: the same bytes as in one, whoever starts them, and one line when one is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from ruamel.yaml import YAML

from tests.kit import free_port
from tests.training.line import CPU
from tests.training.small import ROOT, outputs, prepare, smoke, train
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.families.classifier import train as classifier
from transformer.training import stage

PAIRS = "pairs, at first in both directions, then R-Drop, token batches, accumulation, word dropout"
CASES: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "reviews": ("sentiment", {"train": {"epochs": 2}}),
    PAIRS: (
        "translation",
        {
            "tokenize": {"kind": "none"},
            "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.2},
            "train": {
                **{"batch_unit": "tokens", "batch_size": 300, "accumulation": 2, "word_dropout": 0.2},
                **{"bidirectional_epochs": 1, "r_drop": 1.0, "consistency_from": 2, "epochs": 2},
            },
        },
    ),
    "fewer rows than shards, the mean of epochs": (
        "translation",
        {"train": {"batch_size": 3, "epochs": 2, "averaging": "best", "average_epochs": 2}},
    ),
}


def written(folder: Path, case: str, *, shards: int = 4, **runtime: Any) -> str:
    """Write the inputs of a training; returns the task."""
    task, changes = CASES[case]
    rows = {"download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}}}
    content = smoke(task, rows | changes | {"train": {"shards": shards, "patience": None} | changes["train"]})
    content["runtime"] |= {"tracking": False, "progress": False} | runtime
    prepare(content, task, folder / "data" / task)
    with (folder / "params.yaml").open("w") as stream:
        YAML().dump(content, stream)
    return task


@contextmanager
def running(folder: Path, *command: str) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        yield process
        for each in psutil.pids():
            if psutil.pid_exists(each) and os.getsid(each) == process.pid and each != process.pid:
                os.kill(each, signal.SIGKILL)


def trained(folder: Path, task: str, *launcher: str) -> dict[str, bytes]:
    with running(folder, sys.executable, *launcher, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return outputs(folder / "models") | outputs(folder / "reports")


def change(folder: Path, **runtime: Any) -> None:
    content = YAML(typ="safe").load(folder / "params.yaml")
    content["runtime"] |= runtime
    with (folder / "params.yaml").open("w") as stream:
        YAML().dump(content, stream)


@pytest.mark.parametrize(
    "case", [PAIRS, *(pytest.param(each, marks=pytest.mark.stress) for each in CASES if each != PAIRS)]
)
def test_the_number_of_processes_changes_no_byte(case: str, tmp_path: Path) -> None:
    task = written(tmp_path, case)
    found = []
    for trainers in (1, 2, 4):
        change(tmp_path, trainers=trainers)
        found.append(trained(tmp_path, task))
    assert found[0] == found[1] == found[2]


def test_torchrun_starts_them_as_well(tmp_path: Path) -> None:
    task = written(tmp_path, "reviews")
    alone = trained(tmp_path, task)
    assert trained(tmp_path, task, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2") == alone


@pytest.mark.stress
def test_torchrun_starts_them_on_several_machines(tmp_path: Path) -> None:
    """Two agents, as two machines have them, on this one."""
    task = written(tmp_path, "reviews")
    alone = trained(tmp_path, task)
    shared = ("-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1")
    port = f"--master-port={free_port()}"
    first, second = (
        (sys.executable, *shared, port, f"--node-rank={number}", "-m", "stages.train", task) for number in (0, 1)
    )
    with running(tmp_path, *first) as one, running(tmp_path, *second) as two:
        assert [process.wait(120) for process in (one, two)] == [0, 0]
    assert outputs(tmp_path / "models") | outputs(tmp_path / "reports") == alone


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def checkpoints(folder: Path, task: str) -> list[Path]:
    return [*(folder / ".dvc/tmp/resume" / task).rglob("*.safetensors")]


@pytest.mark.parametrize("end", ["stopped", "lost", pytest.param("killed", marks=pytest.mark.stress)])
def test_an_interrupted_training_resumes_on_another_number_of_processes(end: str, tmp_path: Path) -> None:
    task = written(tmp_path, "reviews", save_every=0.01)
    content = YAML(typ="safe").load(tmp_path / "params.yaml")
    content[task]["train"]["epochs"] = 12
    YAML().dump(content, tmp_path / "params.yaml")
    alone = trained(tmp_path, task)
    (tmp_path / ".dvc").mkdir(exist_ok=True)
    change(tmp_path, trainers=2)
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        wait_for(lambda: checkpoints(tmp_path, task))
        (other,) = psutil.Process(process.pid).children()
        listening = [
            c for p in (other, psutil.Process(process.pid)) for c in p.net_connections() if c.status == "LISTEN"
        ]
        assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} <= {"127.0.0.1", "::1"}, "open to other machines"
        if end == "stopped":
            os.killpg(process.pid, signal.SIGINT)
        else:
            (other if end == "lost" else process).kill()
        _, said = process.communicate(timeout=60)
        _, alive = psutil.wait_procs([other], timeout=30)
        assert not alive
    last = said.strip().splitlines()[-1:]
    if end == "lost":
        assert process.returncode == 1 and "a training process was lost at step" in last[0], said
        assert "lower runtime.trainers, and run it again to resume" in last[0]
    if end == "stopped":
        assert process.returncode == 130 and "run it again to resume from there" in last[0], said
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
    command = [sys.executable, "-m", "tests.training.together", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if kind == "failing":
        assert line in found["error"]
        return
    assert f"warning: {line}" in found["lines"]
    assert found["together"] == found["alone"]


def test_a_process_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    task = written(tmp_path, "reviews", trainers=2)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages/__init__.py").touch()
    code = "import os, sys\nif 'RANK' in os.environ: sys.exit('error: no room for it')\n"
    code += f"sys.path.insert(0, {str(ROOT)!r})\nfrom transformer.workflow.stage import main\n"
    code += "main('train')\n"
    (tmp_path / "stages/train.py").write_text(code)
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.strip().splitlines()[-1].endswith("a training process did not start: error: no room for it"), said


def test_a_process_that_would_train_otherwise_is_one_line(tmp_path: Path) -> None:
    """As after an edit between the starts of the processes, also one that is reverted at once."""
    task = written(tmp_path, "reviews", trainers=2)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages/__init__.py").touch()
    code = "import os, sys\nfrom pathlib import Path\nfile = Path('params.yaml')\ntext = file.read_text()\n"
    code += "if 'RANK' in os.environ: file.write_text(text.replace('seed: ', 'seed: 1'))\n"
    code += f"sys.path.insert(0, {str(ROOT)!r})\nfrom transformer.workflow.stage import main, read_params\n"
    code += "import transformer.workflow.stage as stage\n"
    code += "def once(path):\n    found = read_params(path)\n    file.write_text(text)\n    return found\n"
    code += "stage.read_params = once\nmain('train')\n"
    (tmp_path / "stages/train.py").write_text(code)
    with running(tmp_path, sys.executable, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.strip().splitlines()[-1].endswith("have different parameters, inputs or code: run it again"), said


def test_other_shards_are_another_result(tmp_path: Path) -> None:
    found = []
    for shards in (1, 2):
        (tmp_path / str(shards)).mkdir()
        task = written(tmp_path / str(shards), "reviews", shards=shards)
        found.append(trained(tmp_path / str(shards), task)["sentiment/trained/model.safetensors"])
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("runtime", "training", "message"),
    [
        ({"trainers": 3}, {"shards": 4}, r"runtime.trainers \(3\) must divide train.shards \(4\)"),
        ({}, {"shards": 6}, r"shards \(6\) must be a power of 2"),
    ],
)
def test_shards_and_trainers_that_do_not_fit_are_one_line(
    runtime: dict[str, int], training: dict[str, int], message: str, tmp_path: Path
) -> None:
    content = smoke("sentiment", {"train": training})
    content["runtime"] |= runtime
    with pytest.raises(UserError, match=message):
        train(content, "sentiment", tmp_path, tmp_path, observer=Observer())


@pytest.mark.parametrize(("gpus", "word"), [(1, "1 GPU"), (2, "2 GPUs")])
def test_more_processes_than_gpus_are_refused_before_any_starts(
    gpus: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    content = smoke("sentiment", {"train": {"shards": 4, "epochs": 1}})
    content["runtime"] |= {"trainers": 4}
    params = stage_params(content, "sentiment", classifier.Params, where=Path("smoke"))
    with pytest.raises(UserError, match=f"^runtime.trainers is 4, and this machine has {word}: lower it$"):
        stage._require_processes(params, replace(CPU, device=torch.device("cuda")), Observer())
