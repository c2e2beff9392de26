"""Open models with CTranslate2."""

from functools import partial
from pathlib import Path
from typing import TypeVar

import ctranslate2

from transformer.conversion.opened import Opened
from transformer.core.errors import UserError

Model = TypeVar("Model", ctranslate2.Translator, ctranslate2.Encoder, ctranslate2.Generator)


def open_model(kind: type[Model], folder: Path, threads: int | None) -> Opened[Model]:
    """Open a model of this kind on the CPU; threads: None for all that the process may use.

    Each works on batches of its own: two on one batch wait for each other at every product, which for short texts takes
    ten times as long as one alone. Raises UserError if the model is missing or broken.
    """
    return Opened(partial(_model, kind, folder.absolute()), threads)


def _model(kind: type[Model], folder: Path, threads: int) -> Model:
    try:
        return kind(str(folder), device="cpu", intra_threads=1, inter_threads=threads)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{folder} is no readable CTranslate2 model ({reason}): run `dvc repro` to convert it again"
        ) from error
