"""The lists that commands, tests and tracking go through. No stage imports this file."""

from transformer.core.task import STAGES, open_task, task_names

__all__ = ["STAGES", "TASKS", "tasks_of"]

TASKS = task_names()


def tasks_of(family: str) -> list[str]:
    """The tasks of a family."""
    return [task for task in TASKS if open_task(task).family == family]
