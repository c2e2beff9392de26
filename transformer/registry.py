"""The lists that commands, tests and tracking go through. No stage imports this file."""

from transformer.core.task import STAGES, task_names

__all__ = ["STAGES", "TASKS"]

TASKS = task_names()
