"""The bundle: one self-contained folder that `transformer.load(path)` opens without DVC or MLflow.

config.json           format, task, decoding parameters, the main metric
model/                weights and architecture, as train wrote them
vocab/                the vocabularies, as build_vocab wrote them
pretokenizer.json     how raw text is split
README.md             the model card
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transformer.checkpoint.device import has_device
from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.files import atomic_write, copy_file, copy_folder, read_json, write_json
from transformer.core.task import Task, family_module, family_names, open_task, task_names
from transformer.text.pretokenize import PRETOKENIZERS

if TYPE_CHECKING:  # at run time, a bundle loads only its own family's code
    from transformer.families.classifier.decoding.labels import Classifier
    from transformer.families.seq2seq.decoding.translator import Translator

FORMAT = 1
CONFIG, MODEL, VOCAB = "config.json", "model", "vocab"


def write_bundle(
    bundle: Path, task: Task, *, trained: Path, vocab: Path, tokens: Path, card: str, config: Mapping[str, Any]
) -> None:
    """Write a bundle. config: further entries of config.json (`decoding`, `main_metric`); card: the model card."""
    copy_folder(trained, bundle / MODEL)
    copy_folder(vocab, bundle / VOCAB)
    copy_file(tokens / PRETOKENIZERS, bundle / PRETOKENIZERS)
    with atomic_write(bundle / "README.md") as stream:
        stream.write(card.encode())
    own = {"format": FORMAT, "task": task.name, "family": task.family}
    write_json(bundle / CONFIG, own | ({"classes": task.classes} if task.classes else {}) | dict(config))


def open_bundle(path: Path, device: str = "auto") -> "Translator | Classifier":
    """Open a bundle and return its predictor.

    Raises UserError when it is not a bundle of this format, or the device is not available.
    """
    if not (path / CONFIG).is_file():
        raise UserError(
            f"{path} is not an exported model ({CONFIG} is missing): run `dvc repro` or name another folder"
        )
    config = read_json(path / CONFIG)
    task = _task_of(config)
    if task is None:
        raise UserError(f"{path / CONFIG} is not of format {FORMAT}: export the model again with this version")
    chosen = torch.device(_device(device))
    opening = family_module(task, "decoding.opening")
    decoding = config.get("decoding", {})
    try:
        predictor: Translator | Classifier = opening.open_predictor(
            task, path / MODEL, path / VOCAB, path, decoding, chosen
        )
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"{path} needs more memory than is available: close other programs, or export it again"
        ) from error
    return predictor


def _task_of(config: Any) -> Task | None:
    """The task that a bundle's model was trained for; None if this is not a bundle's config.json.

    Older bundles name only a task, which must be one of the tasks of this project.
    """
    if not isinstance(config, dict) or config.get("format") != FORMAT or not isinstance(config.get("task"), str):
        return None
    name, family, classes = config["task"], config.get("family"), config.get("classes", [])
    if family is None:
        return open_task(name) if name in task_names() else None
    if family not in family_names() or not _are_names(classes):
        return None
    return Task(name=name, family=family, classes=tuple(classes))


def _are_names(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) for name in given)


# torch's threads do not survive a fork, and the child would wait for them forever: it computes with one.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not has_device(name):
        raise UserError(f"device `{name}` is not available: use `auto` or `cpu`")
    return name
