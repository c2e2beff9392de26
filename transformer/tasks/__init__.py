"""All that differs between the tasks: `tasks/<task>/<stage>.py` holds a stage's `Params` and its `run`."""

from importlib import import_module
from types import ModuleType

TASKS = ("translation", "sentiment")
STAGES = ("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "report")


def implementation(task: str, module: str) -> ModuleType:
    """The module of a task: a stage's, or `predictor`. Loaded by name, so that no task depends on another's code."""
    return import_module(f"transformer.tasks.{task}.{module}")


def headline_figures(task: str) -> tuple[str, ...]:
    """The names of the figures in evaluation.json that a summary shows."""
    figures: tuple[str, ...] = import_module(f"transformer.tasks.{task}").HEADLINE
    return figures
