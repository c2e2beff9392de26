"""The bundle: one self-contained folder that `transformer.load(path)` opens without DVC or MLflow.

config.json           format, task, how answers are made, the main metric
model/                weights and architecture, as train wrote them
vocab/                the vocabularies, as build_vocab wrote them
pretokenizer.json     how raw text is split
README.md             the model card
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoint.device import has_device
from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.files import atomic_write, copy_file, copy_folder, read_json, write_json
from transformer.tasks import TASKS, implementation
from transformer.text.pretokenize import PRETOKENIZERS

FORMAT = 1
CONFIG, MODEL, VOCAB = "config.json", "model", "vocab"


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
    """The predictor of a bundle: a Translator or a Reviewer.

    Raises UserError when it is no bundle of this format, and when there is no such device.
    """
    if not (path / CONFIG).is_file():
        raise UserError(f"{path} is no exported model: it has no {CONFIG}; run `dvc repro` or name another folder")
    config = read_json(path / CONFIG)
    if not isinstance(config, dict) or config.get("format") != FORMAT or config.get("task") not in TASKS:
        raise UserError(f"{path / CONFIG} is not of format {FORMAT}: export the model again with this version")
    chosen = torch.device(_device(device))
    predictor: Any = implementation(config["task"], "predictor")
    try:
        return predictor.open_predictor(path, config, chosen)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(f"{path} needs more memory than there is: close other programs, or export it again") from error


# torch's threads do not live on in a forked child, which would wait for them for ever: it computes with one.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not has_device(name):
        raise UserError(f"there is no device `{name}` here: take `auto` or `cpu`")
    return name
