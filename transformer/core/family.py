"""What the workflow asks of a family of tasks: one class that implements `Family` in `families/NAME/__init__.py`.

A family's methods import its code when they are called: no task loads another family's code, and the fingerprint of a
stage has the modules that the methods it uses import (code.py).
"""

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # `transformer --help` needs no pydantic
    from transformer.core.validation import StageParams

Row = dict[str, str]


class StageCode(NamedTuple):
    """A family's code of one stage."""

    Params: "type[StageParams]"
    """Sections of params.yaml that the stage reads."""
    run: Callable[..., dict[str, float]]
    """`run(task, params, paths, observer)` writes the stage's outputs, and returns the metrics to print."""


class Combinations(NamedTuple):
    """Sections of a task that depend on each other."""

    Params: "type[StageParams]"
    check: Callable[..., None]
    """`check(task, params)` raises ValueError, one line, for values that do not fit together."""


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
    def weaknesses(self, task: Any, result: Any) -> Iterator[str]:
        """Yield the model's weaknesses, one line each."""

    @abstractmethod
    def sections(self, task: Any, result: Any) -> Iterator[Any]:
        """Yield the sections of the page (`reporting.content.Section`), the most informative first."""

    @abstractmethod
    def texts(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the fields that must be equal in both systems' predictions."""

    @abstractmethod
    def scored(self, task: Any, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Any]]]:
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
    def open_exported(self, task: Any, bundle: Path, decoding: dict[str, Any], device: str) -> Any:
        """Open the model in a bundle with PyTorch; decoding: from its config.json. Raises UserError."""

    @abstractmethod
    def open_converted(self, task: Any, folder: Path, config: dict[str, Any], threads: int | None) -> Any:
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

    def answer(self, model: Any, config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[Any]]:
        """Return a served model's answers as columns; config: returned by `requested`."""
        table: dict[str, list[Any]] = model.table(texts)
        return table
