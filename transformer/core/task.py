"""Declarations of tasks, found by name: no stage depends on the list of tasks.

`tasks/NAME.py` defines a task's `TASK`, `families/NAME/__init__.py` a family's `FAMILY`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.family import Family
from transformer.core.files import copy_file, read_json, write_json

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
