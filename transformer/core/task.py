"""Declarations of tasks and of families, found by name: no stage depends on the list of either.

`tasks/NAME.py` defines a task's `TASK`, `families/NAME/__init__.py` a family's `FAMILY`. A family's methods import its
code when they are called: no task loads another family's code, and the fingerprint of a stage has the modules that the
methods it uses import (code.py).
"""

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer.core.errors import UserError
from transformer.core.files import copy_file, read_json, write_json

if TYPE_CHECKING:  # `transformer --help` needs no pydantic
    from transformer.core.observer import Observer
    from transformer.core.paths import Paths
    from transformer.core.validation import StageParams


STAGES = ("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "convert", "report")
FORMATS = ("ctranslate2", "onnx")
INT8 = "-int8"
ENGINES = ("torch", *(f"{name}{kind}" for name in FORMATS for kind in ("", INT8)))
"""Inference engines: torch for the bundle itself, or one of the folders in `converted`."""
_ROOT = Path(__file__).parents[1]
MOST_CLASSES = 128
"""Maximum number of classes: a label is one signed byte (int8) in the encoded store."""
NO_INPUT = Path("data/local/none")
"""Placeholder path for an unused input."""
UNSUPERVISED = "unsupervised"
"""Name of the split of texts without labels."""
PRETRAINING = "pretraining.json"
"""File next to the weights of a model that was initialised from a pretrained one: its `path`, `sha256` and `config`."""
LABELS = "labels.json"
"""File in the corpus, its tokens and the encoded store: the class names where they differ from the task's."""

Row = dict[str, str]


class StageCode(NamedTuple):
    """A family's code of one stage."""

    Params: "type[StageParams]"
    """Sections of params.yaml that the stage reads."""
    run: "Callable[[Task, Any, Paths, Observer], dict[str, float]]"
    """Writes the stage's outputs; returns the metrics to print."""


class Combinations(NamedTuple):
    """Sections of a task that depend on each other."""

    Params: "type[StageParams]"
    check: "Callable[[Task, Any], None]"
    """Raises ValueError, one line, for values that do not fit together."""


class Answer(NamedTuple):
    """What a console command says about one text."""

    lines: list[str]
    """The answer."""
    notes: tuple[str, ...]
    """Notes for stderr (inference/notes.py)."""


Answering = Callable[[list[str]], Iterable[Answer]]
"""A function that answers a chunk of texts."""


class CommandLine(ABC):
    """Console commands that ask a family's models."""

    @abstractmethod
    def example(self, task: str, params: Mapping[str, Any], text: str) -> tuple[str, str]:
        """Return an example command and its input, given the result's parameters, by dotted name, and a text."""

    @abstractmethod
    def add_options(self, parser: ArgumentParser, command: str) -> None:
        """Add the options of one command."""

    @abstractmethod
    def answering(self, model: Any, arguments: Namespace) -> Answering:
        """Return a function from a chunk of texts to their answers. Raises UserError for invalid options."""


class Reporting(ABC):
    """A family's part of the report page, and of comparisons of two results."""

    scored_anew = True
    """True if `scored` judges the answers itself, so that it does not matter how either result was measured."""

    @abstractmethod
    def summary(self, result: Any) -> str:
        """Summarize the quality of a result (`reporting.result.Files`) in one line."""

    @abstractmethod
    def weaknesses(self, task: "Task", result: Any) -> Iterator[str]:
        """Yield the model's weaknesses, one line each."""

    @abstractmethod
    def curves(self, task: "Task") -> Sequence[tuple[str, Mapping[str, str], str]]:
        """Return the learning curves, the main one first: title, label by column of history.tsv, and y-axis label."""

    @abstractmethod
    def texts_with_answers(self, task: "Task", result: Any) -> Iterator[Any]:
        """Yield three texts with their answers (`reporting.content.Example`), of the main test split."""

    @abstractmethod
    def sections(self, task: "Task", result: Any) -> Iterator[Any]:
        """Yield the sections of the page (`reporting.content.Section`), the most informative first."""

    @abstractmethod
    def texts(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the fields that must be equal in both systems' predictions."""

    @abstractmethod
    def scored(
        self, task: "Task", systems: Sequence[Sequence[Row]], samples: int
    ) -> list[dict[str, tuple[float, Any]]]:
        """Return each system's metrics by name: the score and its bootstrap samples."""

    @abstractmethod
    def differing(self, metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
        """Return the number of texts on which two systems differ for this metric."""


class Family(ABC):
    """Tasks that share their stages' code and their kinds of models."""

    name: str
    """Name of the folder in transformer/families."""
    headline: tuple[str, ...]
    """Metrics of a summary, the main one first; a result may lack some."""
    question: str
    """Column of predictions.tsv with the input texts."""
    answers: tuple[tuple[str, str], ...]
    """Columns of a served model's answers: MLflow type and name."""
    commands: tuple[tuple[str, str], ...]
    """Names and help texts of the console commands."""

    @abstractmethod
    def download_stage(self) -> StageCode:
        """Writes the corpus; returns the number of rows per split."""

    @abstractmethod
    def tokenize_stage(self) -> StageCode:
        """Writes the pre-tokenized corpus; returns the number of rows per split."""

    @abstractmethod
    def build_vocab_stage(self) -> StageCode:
        """Writes the vocabularies, the encoded store and the statistics; returns the vocabulary sizes."""

    @abstractmethod
    def train_stage(self) -> StageCode:
        """Trains and writes the model; returns the metrics of the kept weights."""

    @abstractmethod
    def figures_stage(self) -> StageCode:
        """Writes the figures; returns their number."""

    @abstractmethod
    def evaluate_stage(self) -> StageCode:
        """Writes metrics, predictions and tables; returns the main metrics of the validation split."""

    @abstractmethod
    def export_stage(self) -> StageCode:
        """Writes and verifies the bundle; returns the number of predictions that it reproduced."""

    @abstractmethod
    def convert_stage(self) -> StageCode:
        """Writes and verifies the model in other formats; returns their sizes."""

    @abstractmethod
    def report_stage(self) -> StageCode:
        """Writes the report page; returns its size."""

    def stage(self, name: str) -> StageCode:
        """Return the code of a stage."""
        code: StageCode = getattr(self, f"{name}_stage")()
        return code

    @abstractmethod
    def combinations(self) -> Combinations:
        """Return the check of sections that depend on each other."""

    @abstractmethod
    def command_line(self) -> CommandLine:
        """Return the console commands that ask a model."""

    @abstractmethod
    def reporting(self) -> Reporting:
        """Return the family's part of the report and of comparisons."""

    @abstractmethod
    def attention_drawings(self, model: Any, text: str, layers: str) -> list[Any]:
        """Return the attention maps of one raw text (`reporting.attention_maps.Drawing`); layers: `last` or `all`."""

    @abstractmethod
    def open_exported(self, task: "Task", bundle: Path, decoding: dict[str, Any], device: str) -> Any:
        """Open the model in a bundle with PyTorch; decoding: from its config.json. Raises UserError."""

    @abstractmethod
    def open_converted(self, task: "Task", folder: Path, config: dict[str, Any], threads: int | None) -> Any:
        """Open a folder that `convert` wrote; loads neither PyTorch nor spaCy.

        config: its config.json; threads: None for all processors. Raises UserError if a part is missing or broken.
        """

    @abstractmethod
    def best_engine(self, config: dict[str, Any], available: list[str]) -> str:
        """Return the fastest engine that answers as `evaluate` did.

        config: the bundle's; available: engines besides torch.
        """

    def request_params(self, config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
        """Return MLflow type, name and default of a served model's request parameters; config: the bundle's."""
        return ()

    def requested(self, config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bundle's config with a request's parameters. Raises UserError for inconsistent ones."""
        return {**config}

    def details(self, model: Any, network: Callable[[], Any], config: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Return what a server tells of one text besides the answer, for people; values that JSON can hold.

        network: opens the model in PyTorch, with which `model` need not compute; config: returned by `requested`.
        """
        return {}

    def answer(self, model: Any, config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[Any]]:
        """Return a served model's answers as columns; config: returned by `requested`."""
        table: dict[str, list[Any]] = model.table(texts)
        return table


@dataclass(frozen=True, kw_only=True)
class Task:
    """A use of a family. A stage depends on those of its values that the stage's code reads."""

    name: str
    family: Family
    classes: tuple[str, ...] = ()
    """Names of classes 0 to K - 1, for a classifier."""
    unit: str = "row"
    """Name of a corpus row; the plural adds an s."""
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Raw texts by column of the sample corpus, for attention maps."""
    card_title: str = ""
    """Title of the model card."""
    card_use: str = ""
    """Markdown of the model card: the model's purpose, and how to call it."""
    corpus_folders: tuple[str, ...] = ()
    """Accepted names of the corpus folder in `make repro DATA=path`, besides the task's own."""

    def __post_init__(self) -> None:
        """Raise UserError for a declaration that would give wrong results or none."""
        if len({*self.classes}) < len(self.classes) or len(self.classes) == 1:
            raise UserError(f"task {self.name}: classes must be at least two different names, not {self.classes}")
        if len(self.classes) > MOST_CLASSES:
            raise UserError(f"task {self.name}: {len(self.classes)} classes, but at most {MOST_CLASSES} can be stored")

    @property
    def units(self) -> str:
        """Plural of `unit`."""
        return f"{self.unit}s"


def task_names() -> tuple[str, ...]:
    """Return all tasks: the modules in transformer/tasks."""
    return tuple(sorted(path.stem for path in (_ROOT / "tasks").glob("[!_]*.py")))


def open_task(name: str) -> Task:
    """Load the declaration of a task. Raises UserError if there is no such task."""
    if name not in task_names():
        raise UserError(f"there is no task `{name}`: use one of {', '.join(task_names())}")
    task: Task = import_module(f"transformer.tasks.{name}").TASK
    return task


def tasks_of(family: str) -> list[str]:
    """Return the tasks of a family."""
    return [task for task in task_names() if open_task(task).family.name == family]


def families() -> dict[str, Family]:
    """Load the declarations of all families, by name: the folders in transformer/families."""
    names = sorted(path.parent.name for path in (_ROOT / "families").glob("*/__init__.py"))
    return {name: import_module(f"transformer.families.{name}").FAMILY for name in names}


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
