"""What a task declares, and its family's code, found by name: no stage depends on the list of tasks.

`tasks/NAME/task.py` holds a task's `TASK`, `families/FAMILY/STAGE.py` what a stage does for all tasks of a family.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transformer.core.errors import UserError

if TYPE_CHECKING:  # each stage loads its own, and `transformer --help` none of them
    from transformer.core.observer import Observer
    from transformer.core.schema import StageParams
    from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
    from transformer.export.exporting import ExportInputs
    from transformer.figures.inputs import FigureInputs
    from transformer.training.stage import TrainingPaths

STAGES = ("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "report")
TASKS = Path(__file__).parents[1] / "tasks"
FAMILIES = TASKS.with_name("families")
MOST_CLASSES = 128
"""A label is one signed byte in the encoded store."""
ELSEWHERE = {"evaluate": "evaluation.evaluate"}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A use of a family: what decides the bytes of its data and its model. Words for people are in `words.py`."""

    name: str
    family: str
    """A folder of transformer/families."""
    classes: tuple[str, ...] = ()
    """The names of classes 0 to K - 1, for a classifier."""
    unit: str = "row"
    """What people call one row of the corpus; with an s, many."""

    def __post_init__(self) -> None:
        """Raises UserError, one line, for a declaration that would give wrong results or none."""
        if self.family not in family_names():
            raise UserError(f"task {self.name}: there is no family `{self.family}`: one of {', '.join(family_names())}")
        if len({*self.classes}) < len(self.classes) or len(self.classes) == 1:
            raise UserError(f"task {self.name}: classes must be at least two different names, not {self.classes}")
        if len(self.classes) > MOST_CLASSES:
            raise UserError(f"task {self.name}: {len(self.classes)} classes, and at most {MOST_CLASSES} can be stored")

    @property
    def units(self) -> str:
        """Many rows."""
        return f"{self.unit}s"


@dataclass(frozen=True, kw_only=True)
class Words:
    """What people read of a task's model."""

    title: str
    use: str
    """Markdown: what it does, and how to call it."""
    folders: tuple[str, ...] = ()
    """The names that the folder of its corpus may have in `make repro DATA=path`, beside the task's own."""


class StageCode(Protocol):
    """A module of a family with the code of one stage."""

    @property
    def Params(self) -> "type[StageParams]":  # noqa: N802
        """The sections of params.yaml that the stage reads."""


class DownloadCode(StageCode, Protocol):
    """families/F/download.py."""

    def run(self, task: Task, params: Any, *, output: Path, observer: "Observer") -> dict[str, float]:
        """Write the corpus; returns the rows of each split."""


class TokenizeCode(StageCode, Protocol):
    """families/F/tokenize.py."""

    def run(self, task: Task, params: Any, *, corpus: Path, tokens: Path, observer: "Observer") -> dict[str, float]:
        """Write the pre-tokenized corpus; returns the rows of each split."""


class BuildVocabCode(StageCode, Protocol):
    """families/F/build_vocab.py."""

    def run(
        self,
        task: Task,
        params: Any,
        *,
        tokens: Path,
        vocab: Path,
        encoded: Path,
        statistics: Path,
        observer: "Observer",
    ) -> dict[str, float]:
        """Write the vocabularies, the encoded store and the statistics; returns the vocabularies' sizes."""


class TrainCode(StageCode, Protocol):
    """families/F/train.py."""

    def run(self, task: Task, params: Any, *, paths: "TrainingPaths", observer: "Observer") -> dict[str, float]:
        """Train and write the model; returns the metrics of the weights that were kept."""


class FiguresCode(StageCode, Protocol):
    """families/F/figures.py."""

    def run(
        self, task: Task, params: Any, *, inputs: "FigureInputs", figures: Path, observer: "Observer"
    ) -> dict[str, float]:
        """Write the figures; returns their number."""


class EvaluateCode(StageCode, Protocol):
    """families/F/evaluation/evaluate.py."""

    def run(
        self,
        task: Task,
        params: Any,
        *,
        inputs: "EvaluationInputs",
        outputs: "EvaluationOutputs",
        observer: "Observer",
    ) -> dict[str, float]:
        """Write metrics, predictions and tables; returns the main metrics of the validation split."""


class ExportCode(StageCode, Protocol):
    """families/F/export.py."""

    def run(
        self, task: Task, params: Any, *, inputs: "ExportInputs", bundle: Path, observer: "Observer"
    ) -> dict[str, float]:
        """Write the bundle and check it; returns the number of answers that agreed."""


class ReportCode(StageCode, Protocol):
    """families/F/report.py."""

    def run(self, task: Task, params: Any, *, root: Path, observer: "Observer") -> dict[str, float]:
        """Write the page of the result in `root`."""


def task_names() -> tuple[str, ...]:
    """All tasks: the folders beside the declarations."""
    return tuple(sorted(path.parent.name for path in TASKS.glob("*/task.py")))


def family_names() -> tuple[str, ...]:
    """All families."""
    return tuple(sorted(path.parent.name for path in FAMILIES.glob("*/train.py")))


def open_task(name: str) -> Task:
    """The declaration of a task. Raises UserError where there is none of this name."""
    if name not in task_names():
        raise UserError(f"there is no task `{name}`: take one of {', '.join(task_names())}")
    task: Task = import_module(f"transformer.tasks.{name}.task").TASK
    return task


def words_of(task: Task) -> Words:
    """What people read of its model."""
    words: Words = import_module(f"transformer.tasks.{task.name}.words").WORDS
    return words


def import_family(family: str, module: str) -> Any:
    """A module of a family, loaded when it is needed: no task loads another family's code."""
    return import_module(f"transformer.families.{family}.{module}")


def family_module(task: Task, module: str) -> Any:
    """A module of the task's family."""
    return import_family(task.family, module)


def stage_code(task: Task, stage: str) -> StageCode:
    """The code of one stage; tests/families.py holds every family's modules to the protocols above."""
    code: StageCode = family_module(task, ELSEWHERE.get(stage, stage))
    return code
