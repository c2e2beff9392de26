"""The modules that a stage imports, found by parsing the code: what DVC must know to rerun only affected stages.

`python -m tests.closure` prints them.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.kit import ROOT
from transformer.core.task import ELSEWHERE, open_task
from transformer.registry import STAGES, TASKS

OWN = ("transformer", "stages")
_BY_NAME = {
    "convert": ["transformer.families.{family}.decoding.opening", "transformer.families.{family}.conversion.opening"],
    "export": ["transformer.families.{family}.decoding.opening", "transformer.tasks.{task}.words"],
    "report": ["transformer.families.{family}.evaluation.compare", "transformer.families.{family}.shown"],
}
"""What a stage imports by name, besides its task's declaration and its family's code."""


def closure(stage: str, task: str) -> set[str]:
    """Paths, relative to the root, of every module that `python -m stages.STAGE TASK` imports.

    Without the `__init__.py` files, which contain only docstrings.
    """
    family = open_task(task).family
    named = ["transformer.tasks.{task}.task", "transformer.families.{family}." + ELSEWHERE.get(stage, stage)]
    roots = [name.format(task=task, family=family) for name in (*named, *_BY_NAME.get(stage, ()))]
    seen: set[Path] = set()
    waiting = [path for root in (f"stages.{stage}", *roots) for path in _files(root)]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [file for name in imports(path) if name.split(".")[0] in OWN for file in _files(name)]
    return {path.relative_to(ROOT).as_posix() for path in seen}


def third_party(stage: str, task: str) -> set[str]:
    """The third-party packages, by import name, that those modules import, including imports within functions."""
    return {name.split(".")[0] for path in closure(stage, task) for name in imports(ROOT / path)} - set(OWN)


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The names that running a module may import, without those only for the type checker."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)


def _files(module: str) -> list[Path]:
    """A module's file; None for a package or anything that is not a module."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return [path] if path.is_file() else []


if __name__ == "__main__":
    for stage in STAGES:
        for task in TASKS:
            print(f"{stage}@{task}", *sorted(closure(stage, task)), sep="\n  ")
