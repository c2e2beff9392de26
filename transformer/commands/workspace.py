"""The folder that the console commands act on: the repository's root, wherever in it they are started."""

import os
from pathlib import Path


def find_workspace(folder: Path) -> Path:
    """The nearest folder, from `folder` upwards, with a DVC repository and its workflow; `folder` if there is none.

    An older `transformer sync` left a `.dvc` in the subfolder it was started in, which has no workflow.
    """
    return next((each for each in (folder, *folder.parents) if _is_root(each)), folder)


def enter_workspace() -> None:
    """Make the workspace the working directory; paths on the command line went through `given_path` before."""
    os.chdir(find_workspace(Path.cwd()))


def given_path(text: str) -> Path:
    """A path as somebody wrote it, who means the folder that he stands in."""
    path, here = Path(text), Path.cwd()
    return path if text == "-" or find_workspace(here) == here else here / path


def _is_root(folder: Path) -> bool:
    return (folder / ".dvc").is_dir() and (folder / "dvc.yaml").is_file()
