"""Task declarations and family code, both found by name: no stage depends on the list of tasks.

`tasks/NAME/task.py` defines a task's `TASK`; `families/FAMILY/STAGE.py` is the code of a stage for all tasks of a
family.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transformer.core.errors import UserError
from transformer.core.files import copy_file, read_json, write_json

if TYPE_CHECKING:  # each stage imports only its own, and `transformer --help` none of them
    from transformer.conversion.stage import ConvertInputs, ConvertOutputs
    from transformer.core.observer import Observer
    from transformer.core.schema import StageParams
    from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
    from transformer.export.exporting import ExportInputs
    from transformer.figures.inputs import FigureInputs
    from transformer.training.stage import TrainingPaths

STAGES = ("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "convert", "report")
TASKS = Path(__file__).parents[1] / "tasks"
FAMILIES = TASKS.with_name("families")
MOST_CLASSES = 128
"""Maximum number of classes: a label is one signed byte (int8) in the encoded store."""
MODULE_OF_STAGE = {"evaluate": "evaluation.evaluate"}
NO_INPUT = Path("data/local/none")
"""Placeholder path for an unused input."""
UNSUPERVISED = "unsupervised"
"""Name of the split of texts without labels."""
PRETRAINING = "pretraining.json"
"""File next to the weights of a model that was initialised from a pretrained one: its `path`, `sha256` and `config`."""
LABELS = "labels.json"
"""File in the corpus, its tokens and the encoded store: the class names where they differ from the task's."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A use of a family: everything that determines its data and model. Text for people is in `words.py`."""

    name: str
    family: str
    """Name of a folder in transformer/families."""
    classes: tuple[str, ...] = ()
    """Names of classes 0 to K - 1, for a classifier."""
    unit: str = "row"
    """Name of a corpus row; the plural adds an s."""
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Raw texts by column of the sample corpus, for attention maps."""

    def __post_init__(self) -> None:
        """Raise UserError for a declaration that would give wrong results or none."""
        if self.family not in family_names():
            raise UserError(f"task {self.name}: there is no family `{self.family}`: one of {', '.join(family_names())}")
        if len({*self.classes}) < len(self.classes) or len(self.classes) == 1:
            raise UserError(f"task {self.name}: classes must be at least two different names, not {self.classes}")
        if len(self.classes) > MOST_CLASSES:
            raise UserError(f"task {self.name}: {len(self.classes)} classes, but at most {MOST_CLASSES} can be stored")

    @property
    def units(self) -> str:
        """Plural of `unit`."""
        return f"{self.unit}s"


@dataclass(frozen=True, kw_only=True)
class Words:
    """Text for people about a task's model."""

    title: str
    use: str
    """Markdown: the model's purpose, and how to call it."""
    folders: tuple[str, ...] = ()
    """Accepted names of the corpus folder in `make repro DATA=path`, besides the task's own."""


class StageCode(Protocol):
    """A family's module with the code of one stage."""

    @property
    def Params(self) -> "type[StageParams]":  # noqa: N802
        """Sections of params.yaml that the stage reads."""


class DownloadCode(StageCode, Protocol):
    """families/F/download.py."""

    def run(self, task: Task, params: Any, *, output: Path, observer: "Observer") -> dict[str, float]:
        """Write the corpus; return the number of rows per split."""


class TokenizeCode(StageCode, Protocol):
    """families/F/tokenize.py."""

    def run(self, task: Task, params: Any, *, corpus: Path, tokens: Path, observer: "Observer") -> dict[str, float]:
        """Write the pre-tokenized corpus; return the number of rows per split."""


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
        """Write the vocabularies, the encoded store and the statistics; return the vocabulary sizes."""


class TrainCode(StageCode, Protocol):
    """families/F/train.py."""

    def run(self, task: Task, params: Any, *, paths: "TrainingPaths", observer: "Observer") -> dict[str, float]:
        """Train and write the model; return the metrics of the kept weights."""


class FiguresCode(StageCode, Protocol):
    """families/F/figures.py."""

    def run(
        self, task: Task, params: Any, *, inputs: "FigureInputs", figures: Path, observer: "Observer"
    ) -> dict[str, float]:
        """Write the figures; return their number."""


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
        """Write metrics, predictions and tables; return the main metrics of the validation split."""


class ExportCode(StageCode, Protocol):
    """families/F/export.py."""

    def run(
        self, task: Task, params: Any, *, inputs: "ExportInputs", bundle: Path, observer: "Observer"
    ) -> dict[str, float]:
        """Write and verify the bundle; return the number of predictions that it reproduced."""


class ConvertCode(StageCode, Protocol):
    """families/F/convert.py."""

    def run(
        self, task: Task, params: Any, *, inputs: "ConvertInputs", outputs: "ConvertOutputs", observer: "Observer"
    ) -> dict[str, float]:
        """Write and verify the model in other formats; return their sizes."""


class ReportCode(StageCode, Protocol):
    """families/F/report.py."""

    def run(self, task: Task, params: Any, *, root: Path, observer: "Observer") -> dict[str, float]:
        """Write the report page of the result in `root`."""


def task_names() -> tuple[str, ...]:
    """Return all tasks: the folders with a task.py."""
    return tuple(sorted(path.parent.name for path in TASKS.glob("*/task.py")))


def family_names() -> tuple[str, ...]:
    """Return all families: the folders with a train.py."""
    return tuple(sorted(path.parent.name for path in FAMILIES.glob("*/train.py")))


def open_task(name: str) -> Task:
    """Load the declaration of a task. Raises UserError if there is no such task."""
    if name not in task_names():
        raise UserError(f"there is no task `{name}`: use one of {', '.join(task_names())}")
    task: Task = import_module(f"transformer.tasks.{name}.task").TASK
    return task


def words_of(task: Task) -> Words:
    """Load the text for people about a task's model."""
    words: Words = import_module(f"transformer.tasks.{task.name}.words").WORDS
    return words


def import_family(family: str, module: str) -> Any:
    """Import a family's module on demand: no task loads another family's code."""
    return import_module(f"transformer.families.{family}.{module}")


def family_module(task: Task, module: str) -> Any:
    """Import a module of the task's family."""
    return import_family(task.family, module)


def stage_code(task: Task, stage: str) -> StageCode:
    """Import the code of one stage; tests/families.py has mypy check all families' modules against the protocols."""
    code: StageCode = family_module(task, MODULE_OF_STAGE.get(stage, stage))
    return code


def write_labels(folder: Path, labels: Sequence[str]) -> None:
    """Write the names of classes 0 to K - 1 next to the rows in `folder`."""
    write_json(folder / LABELS, list(labels))


def pass_on_labels(source: Path, target: Path) -> None:
    """Copy the class names, if any, from one stage's output to the next one's."""
    (target / LABELS).unlink(missing_ok=True)
    if (source / LABELS).is_file():
        copy_file(source / LABELS, target / LABELS)


def with_labels(task: Task, folder: Path) -> Task:
    """Return the task, with the classes named by the corpus in `folder`, if any."""
    path = folder / LABELS
    return replace(task, classes=tuple(read_json(path))) if path.is_file() else task
