"""Runs stages in the test's own process, without DVC, MLflow and a clone, in a second."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.kit import fresh_profile
from tests.training.small import own_torch_settings, run_stage
from transformer.core.observer import Observer
from transformer.core.task import open_task
from transformer.workflow.stage import task_paths


class Said(Observer):
    """Keeps the lines that a stage prints."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Keep it."""
        self.lines.append(line)


class Stages:
    """The stages of one task in their own folder, with the profile `smoke` and some changed leaves."""

    def __init__(self, folder: Path, task: str, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
        """changes: by the dotted path in the task's section, such as `tokenize.kind`."""
        monkeypatch.chdir(folder)
        self._patch = monkeypatch
        self.folder, self.task, self.observer = folder, task, Said()
        self.content = fresh_profile("smoke")
        for path, value in changes.items():
            section, leaf = path.split(".")
            self.content[task][section][leaf] = value

    def run(self, *names: str) -> None:
        """Run these stages in the given order. Raises UserError as they do.

        Without the figures of the paper, which take 3 s: tests/reporting/test_figures.py draws them.
        """
        for name in names:
            if name == "figures":
                drawing = import_module(f"transformer.families.{open_task(self.task).family.name}.figures")
                self._patch.setattr(drawing, "explain", lambda *_: 0)
            with own_torch_settings():
                run_stage(self.content, self.task, name, task_paths(self.task), self.observer)

    @property
    def reports(self) -> Path:
        """The folder of the task's reports."""
        return self.folder / "reports" / self.task
