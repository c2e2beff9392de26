"""The modules that a stage imports, by reading the code: what DVC must know to rerun just what a change touches.

`python -m tests.closure` prints them, to be copied into dvc.yaml.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from transformer.tasks import STAGES, TASKS

ROOT = Path(__file__).parents[1]
OWN = ("transformer", "stages")


def closure(stage: str, task: str) -> set[str]:
    """Paths, relative to the root, of every module that `python -m stages.STAGE TASK` imports."""
    roots = [f"stages.{stage}", f"transformer.tasks.{task}.{stage}"]
    # Loaded by name: the predictor of the bundle that `export` opens again, and how `report` scores two results.
    by_name = {"export": "predictor", "report": "compare"}
    if stage in by_name:
        roots.append(f"transformer.tasks.{task}.{by_name[stage]}")
    seen: set[Path] = set()
    waiting = [path for root in roots for path in _files(root)]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [file for name in _imports(path) if name.split(".")[0] in OWN for file in _files(name)]
    return {path.relative_to(ROOT).as_posix() for path in seen}


def third_party(stage: str, task: str) -> set[str]:
    """The packages of others, by the name of their import, that those modules import, also within functions."""
    return {name.split(".")[0] for path in closure(stage, task) for name in _imports(ROOT / path)} - set(OWN)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(module: str) -> list[Path]:
    """A module's file and those of the packages around it, which importing it runs too."""
    files, folder = [], ROOT
    for part in module.split("."):
        if (folder / part / "__init__.py").is_file():
            files.append(folder / part / "__init__.py")
        elif (folder / f"{part}.py").is_file():
            files.append(folder / f"{part}.py")
            break
        folder = folder / part
    return files


if __name__ == "__main__":
    for stage in STAGES:
        for task in TASKS:
            print(f"{stage}@{task}", *sorted(closure(stage, task)), sep="\n  ")
