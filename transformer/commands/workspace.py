"""Workspace of the console commands: the repository's root, from any folder within it."""

import os
import sys
from pathlib import Path

from transformer.core.errors import UserError

_PACKAGE = Path("transformer", "cli.py")
_RUNNING = Path(__file__).parents[2] / _PACKAGE


def find_workspace(folder: Path) -> Path:
    """Return the nearest folder, from `folder` upwards, with a `.dvc` and a dvc.yaml; `folder` itself if none has."""
    return next((each for each in (folder, *folder.parents) if _is_root(each)), folder)


def enter_workspace() -> None:
    """Change to the workspace. Paths on the command line must have been resolved by `given_path` before."""
    os.chdir(find_workspace(Path.cwd()))


def run_own_code() -> None:
    """Restart the command with the workspace's code if it runs another's.

    An environment has the command of the clone that it was made in. In another clone, or a worktree, DVC's stages run
    the code of that one.
    """
    workspace = find_workspace(Path.cwd())
    if (workspace / _PACKAGE).is_file() and not (workspace / _PACKAGE).samefile(_RUNNING):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(workspace), os.environ.get("PYTHONPATH"))))
        os.execv(sys.executable, (sys.executable, "-P", "-m", "transformer", *sys.argv[1:]))


def require_workspace() -> None:
    """Raise UserError if the working directory is not a workspace."""
    here = Path.cwd()
    if not _is_root(here):
        raise UserError(
            f"{here} is not in a clone of this project (no .dvc and dvc.yaml, here or above): change to one"
        )


def given_path(text: str) -> Path:
    """Resolve a path from the command line against the user's folder; - stays as it is."""
    path, here = Path(text), Path.cwd()
    return path if text == "-" or find_workspace(here) == here else here / path


def _is_root(folder: Path) -> bool:
    return (folder / ".dvc").is_dir() and (folder / "dvc.yaml").is_file()
