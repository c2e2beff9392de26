"""Train-your-own Transformers: the package behind the workflow's stages."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any


def load(path: str | PathLike[str], device: str = "auto") -> Any:
    """Open an exported model: a Translator (`.translate(texts)`) or a Reviewer (`.classify(texts)`).

    path: a bundle that the export stage wrote; device: `auto`, `cpu`, `cuda` or `mps`.
    Raises transformer.core.errors.UserError when it is no bundle.
    """
    # By name: every stage imports this file, and only some of them should depend on the export's code.
    return import_module("transformer.export.bundle").open_bundle(Path(path), device)
