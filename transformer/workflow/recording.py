"""Has the last stage write a result's run, in a process of its own that is given up when MLflow does not answer."""

import subprocess
import sys


def record_result(task: str, seconds: float) -> str:
    """Write the run of the task's result in the current folder; returns what to say about it.

    seconds: after which it is given up.
    """
    command = [sys.executable, "-m", "transformer.workflow.sync", task]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"MLflow has not taken the run in {seconds:g} s: `transformer sync` writes it later"
    finally:
        process.kill()
        process.wait()
    more = "" if process.returncode == 0 else "; `transformer sync` writes the run later"
    return f"{' '.join(said.split())}{more}"
