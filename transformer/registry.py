"""Lists of tasks for commands, tests and tracking. No stage imports this file."""

from pathlib import Path

from transformer.core.task import STAGES, open_task, task_names

__all__ = ["STAGES", "TASKS", "is_made", "tasks_of"]

TASKS = task_names()


def tasks_of(family: str) -> list[str]:
    """Return the tasks of a family."""
    return [task for task in TASKS if open_task(task).family == family]


def is_made(path: str) -> bool:
    """True if a relative path is, or lies in, a folder that the stages of a task write."""
    root, task = (*Path(path).parts[:2], "", "")[:2]
    return root in ("data", "models", "reports") and task in TASKS
