"""Sessions of converted models, usable across fork and pickling, and the parts that they share."""

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from transformer.core.errors import UserError
from transformer.core.process import usable_cores
from transformer.data.vocabulary import Vocabulary, read_vocabularies, require_size
from transformer.inference.bundle import CONFIG, MODEL

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Model = TypeVar("Model")


class Opened(Generic[Model]):
    """A model that also answers in a forked child and after pickling, where it is opened again.

    An engine's threads do not survive a fork, and the child would wait for them forever; there it has one thread.
    """

    def __init__(self, make: Callable[[int], Model], threads: int | None) -> None:
        """make: opens the model with a number of threads; threads: None for all processors."""
        self._make, self._threads = make, threads
        self._process, self._model = os.getpid(), make(threads or usable_cores())

    def __call__(self) -> Model:
        """Return this process's model."""
        if self._process != os.getpid():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._model))  # never freed: that would wait for its threads
            self._process, self._model = os.getpid(), self._make(1)
        return self._model

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the recipe for opening it."""
        return type(self), (self._make, self._threads)


class Parts(NamedTuple):
    """Vocabularies and sizes next to the weights in `model/`."""

    vocabularies: dict[str, Vocabulary]
    positions: int
    """Maximum sequence length in tokens."""


def sizes(vocabularies: Mapping[str, Vocabulary], positions: int) -> dict[str, Any]:
    """Return the sizes to record in config.json."""
    return {"positions": positions, "vocabulary": {side: each.size for side, each in vocabularies.items()}}


def read_parts(folder: Path, config: Mapping[str, Any], *sides: str) -> Parts:
    """Read the parts of a converted model; config: its config.json; sides: of its vocabularies.

    Raises UserError when one is missing or broken, or belongs to another model.
    """
    try:
        positions = int(config[MODEL]["positions"])
        wanted = {side: int(config[MODEL]["vocabulary"][side]) for side in sides}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{folder / CONFIG} lacks the model's sizes: run `dvc repro` to convert it again") from error
    vocabularies = read_vocabularies(folder / "vocab", *sides)
    for side, size in wanted.items():
        require_size(vocabularies[side], size, folder / "vocab")
    return Parts(vocabularies, positions)


def open_ctranslate2(kind: str, folder: Path, threads: int | None) -> Opened[Any]:
    """Open a CTranslate2 model on the CPU; kind: its class; threads: None for all that the process may use.

    Each works on batches of its own: two on one batch wait for each other at every product, which for short texts takes
    ten times as long as one alone. Raises UserError if the model is missing or broken.
    """
    return Opened(partial(_ctranslate2, kind, folder.absolute()), threads)


def _ctranslate2(kind: str, folder: Path, threads: int) -> Any:
    import ctranslate2

    try:
        return getattr(ctranslate2, kind)(str(folder), device="cpu", intra_threads=1, inter_threads=threads)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{folder} is no readable CTranslate2 model ({reason}): run `dvc repro` to convert it again"
        ) from error


def open_onnx(path: Path, threads: int | None) -> "Opened[InferenceSession]":
    """Open an ONNX model on the CPU; threads: None for all available. Raises UserError if the file is not a model."""
    return Opened(partial(_session, path.absolute()), threads)


def _session(path: Path, threads: int) -> "InferenceSession":
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Idle threads that spin take the processor from the Python between two steps, and from other requests.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run `dvc repro` to convert the model again") from error
    except Exception as error:  # ONNX Runtime's own classes derive from Exception alone
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} is no readable ONNX model ({reason}): run `dvc repro` to convert it again") from error
