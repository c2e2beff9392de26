"""What the sections of a task must have in common: nothing beyond what each stage sees."""

from transformer.core.schema import StageParams
from transformer.core.task import Task


class Params(StageParams):
    """No sections depend on each other."""


def check(task: Task, params: Params) -> None:
    """Nothing to check."""
