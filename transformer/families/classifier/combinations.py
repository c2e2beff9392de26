"""What the sections of a task must have in common: nothing beyond what each stage sees."""

from transformer.core.schema import StageParams
from transformer.core.task import Task


class Params(StageParams):
    """No sections depend on each other."""


def check(task: Task, params: Params) -> None:
    """Raises ValueError, one line, where the task names no classes."""
    if not task.classes:
        raise ValueError(f"transformer/tasks/{task.name}/task.py names no classes: a classifier needs at least two")
