"""Find the right Python for a stage, even if `.venv/bin/dvc repro` runs without an activated environment.

DVC starts the first `python` on PATH, after removing the stage's outputs. If that one lacks the project's libraries,
the stage restarts in the environment that DVC itself runs in. Only the standard library of Python 3.7 is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_NEEDED = ("pydantic", "ruamel", "tokenizers", "torch", "tqdm")
_TAKEN_OVER = "TRANSFORMER_STAGE_TAKEN_OVER"
_SHELLS = 3  # processes between DVC and a stage, at most


def require_module() -> None:
    """Exit with one line if a stage runs as a file: Python then looks for the standard library's `tokenize` beside it.

    That is imported from all over the library.
    """
    main = sys.modules["__main__"]
    script = Path(getattr(main, "__file__", None) or "-")
    if main.__spec__ is None and script.parent.name == "stages":
        words = ("python", "-m", f"stages.{script.stem}", *(sys.argv[1:] or ["TASK"]))
        sys.exit(f"error: a stage runs as a module: `{' '.join(words)}`, in the project's folder")


def require_libraries() -> None:
    """Restart in an environment with the libraries if this one lacks some; exit with one line if there is none."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if not missing:
        return
    command = getattr(sys, "orig_argv", [])
    if _TAKEN_OVER not in os.environ and command:
        for python in (*_of_dvc(), Path(os.environ.get("DVC_ROOT", ""), ".venv", "bin", "python")):
            if python.is_file() and os.access(str(python), os.X_OK):
                os.environ[_TAKEN_OVER] = "1"
                os.execv(str(python), [str(python), *command[1:]])
    sys.exit(
        f"error: {sys.executable} has no {', '.join(missing)}: activate the project's environment"
        " (`source .venv/bin/activate`) or use `make repro`; `dvc checkout` restores removed outputs"
    )


def _of_dvc() -> Iterator[Path]:
    """Yield the Python of the DVC process that started this one, if /proc shows it (Linux)."""
    process = os.getppid()
    for _ in range(_SHELLS):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return
        if any(word.rpartition(b"/")[2] == b"dvc" for word in words[1:]):
            yield Path(os.fsdecode(words[0]))
