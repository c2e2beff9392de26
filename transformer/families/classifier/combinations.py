"""Checks across the sections of a task: only the task's classes, since no sections depend on each other."""

from transformer.core.schema import StageParams
from transformer.core.task import Task


class Params(StageParams):
    """No sections depend on each other."""


def check(task: Task, params: Params) -> None:
    """Raise ValueError, one line, if the task declares no classes."""
    if not task.classes:
        raise ValueError(f"transformer/tasks/{task.name}/task.py names no classes: a classifier needs at least two")
