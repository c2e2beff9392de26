"""The overhead of the workflow: `python -m benchmarks.workflow_overhead`.

`dvc repro` with nothing to do, in total and beyond DVC's own time for as many stages that copy a file; the time of each
translation stage from its start until it calls the task's code, with tracking on; `transformer --help`; and
`transformer translate` with one sentence, beyond importing torch. On a copy of the checkout with the profile `smoke`
and spaCy's words.
"""

import json
import subprocess
import sys
import time
from functools import partial

from benchmarks.harness import Contender, Limit, Options, Report, Table, Work, main, measured, seconds
from benchmarks.workspace import FOLDER, ROOT, Workspace, clone
from transformer.commands.profiles import profile_params
from transformer.core.errors import UserError
from transformer.registry import STAGES, TASKS

NOTHING = "dvc repro, nothing to do"
EMPTY = "python that does nothing"
BEYOND_DVC = f"{NOTHING}, beyond DVC's own"
HELP = "transformer --help"
TRANSLATE = "transformer translate, beyond import torch"
# Prints the time at which the script gets its stage, and kills the stage with its tracking process, which would
# otherwise spend seconds recording that the stage was stopped.
_UNTIL_WORK = """
import os, runpy, signal, sys, time
from transformer.core.stage import Stage
def started(self, *given):
    print(time.time(), flush=True)
    os.killpg(0, signal.SIGKILL)
Stage.__init__ = started
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=False)
"""


def measure(options: Options) -> Report:
    """Seconds for each."""
    workspace = clone("workflow", profile_params(ROOT, "smoke"))
    workspace.change({"runtime.tracking": False, "translation.tokenize.kind": "spacy"})
    print("  dvc repro", file=sys.stderr)
    workspace.call("dvc", "repro")
    workspace.change({"runtime.tracking": True})
    plain = _plain_pipeline(len(STAGES) * len(TASKS))
    contenders: dict[str, Contender] = {
        EMPTY: lambda _: Work(1, _seconds(workspace, "python", "-c", "pass")),
        NOTHING: lambda _: Work(1, _repro(workspace)),
        BEYOND_DVC: lambda _: Work(1, -_repro(plain) + _repro(workspace)),
        HELP: lambda _: Work(1, _seconds(workspace, "transformer", "--help")),
        TRANSLATE: partial(_translate, workspace),
    }
    contenders |= {f"start of {stage}": partial(_start, workspace, stage) for stage in STAGES}
    limits = [Limit(BEYOND_DVC, 1.0), Limit(HELP, 0.3), Limit(TRANSLATE, 1.2), Limit(NOTHING, 2.0)]
    limits += (Limit(f"start of {stage}", 2.5) for stage in STAGES)
    times = seconds(measured(contenders, options, warm=False))
    return Report([Table("Workflow overhead", "seconds", times, EMPTY, limits=limits)])


def _seconds(workspace: Workspace, *command: str) -> float:
    started = time.perf_counter()
    workspace.call(*command)
    return time.perf_counter() - started


def _repro(workspace: Workspace) -> float:
    started = time.perf_counter()
    printed = workspace.call("dvc", "repro")
    elapsed = time.perf_counter() - started
    if "Running stage" in printed:
        raise UserError("dvc repro reran a stage that it had just run: `dvc status` shows why")
    return elapsed


def _plain_pipeline(stages: int) -> Workspace:
    """A repository with this many stages that copy a file, all of them up to date."""
    root = FOLDER / "plain"
    root.mkdir(parents=True, exist_ok=True)
    names = [f"copy_{number}" for number in range(stages)]
    pipeline = {name: {"cmd": f"cp text {name}", "deps": ["text"], "outs": [name]} for name in names}
    (root / "text").write_text("text")
    (root / "dvc.yaml").write_text(json.dumps({"stages": pipeline}))
    subprocess.run(["git", "init", "-q", root], check=True)
    workspace = Workspace(root)
    if not (root / ".dvc").exists():
        workspace.call("dvc", "init", "-q")
    workspace.call("dvc", "repro")
    return workspace


def _translate(workspace: Workspace, number: int) -> Work:
    torch = _seconds(workspace, "python", "-c", "import torch")
    return Work(1, _seconds(workspace, "transformer", "translate", "Ein Mann schläft.") - torch)


def _start(workspace: Workspace, stage: str, number: int) -> Work:
    command = [sys.executable, "-c", _UNTIL_WORK, f"stages.{stage}", "translation"]
    environment = workspace.environment() | {"DVC_ROOT": str(workspace.root)}
    started = time.time()
    done = subprocess.run(
        command,
        cwd=workspace.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if not done.stdout:
        raise UserError(f"{stage} did not start: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return Work(1, float(done.stdout.split()[0]) - started)


if __name__ == "__main__":
    main("workflow_overhead", __doc__, measure)
