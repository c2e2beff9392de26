"""The bundle: one self-contained folder that `transformer.load(path)` opens without DVC or MLflow.

config.json           format, task, how answers are made, the main metric
model/                weights and architecture, as train wrote them
vocab/                the vocabularies, as build_vocab wrote them
pretokenizer.json     how raw text is split
README.md             the model card
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transformer.errors import UserError
from transformer.files import atomic_write, copy_file, copy_folder, read_json, write_json
from transformer.tasks import TASKS, implementation
from transformer.text.pretokenize import PRETOKENIZERS

FORMAT = 1
CONFIG, MODEL, VOCAB = "config.json", "model", "vocab"
_UNFIT = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def write_bundle(
    bundle: Path, task: str, *, trained: Path, vocab: Path, tokens: Path, card: str, config: Mapping[str, Any]
) -> None:
    """Gather the parts. config: further entries of config.json (`decoding`, `main_metric`); card: the model card."""
    copy_folder(trained, bundle / MODEL)
    copy_folder(vocab, bundle / VOCAB)
    copy_file(tokens / PRETOKENIZERS, bundle / PRETOKENIZERS)
    with atomic_write(bundle / "README.md") as stream:
        stream.write(card.encode())
    write_json(bundle / CONFIG, {"format": FORMAT, "task": task, **config})


def open_bundle(path: Path, device: str = "auto") -> Any:
    """The predictor of a bundle: a Translator or a Reviewer. Raises UserError when it is no bundle of this format."""
    if not (path / CONFIG).is_file():
        raise UserError(f"{path} is no exported model: it has no {CONFIG}; run `dvc repro` or name another folder")
    config = read_json(path / CONFIG)
    if not isinstance(config, dict) or config.get("format") != FORMAT or config.get("task") not in TASKS:
        raise UserError(f"{path / CONFIG} is not of format {FORMAT}: export the model again with this version")
    try:
        return implementation(config["task"], "predictor").open_predictor(path, config, _device(device))
    except _UNFIT as error:  # the boundary: the files may say anything
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} is no whole model of this version ({type(error).__name__}: {reason}): export it again"
        ) from error


def _device(name: str) -> torch.device:
    if name != "auto":
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
