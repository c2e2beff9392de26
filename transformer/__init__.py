"""Train-your-own Transformers: the package behind the workflow's stages."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer.families.classifier.classifier import Classifier
    from transformer.families.language.model import LanguageModel
    from transformer.families.seq2seq.translator import Translator


def load(
    path: str | PathLike[str], device: str = "auto", engine: str | None = None
) -> "Translator | Classifier | LanguageModel":
    """Open an exported model: a Translator (`.translate(texts)`), a Classifier (`.classify(texts)`) or a LanguageModel
    (`.fill(text)`, `.generate(prompt)`, `.score(texts)`, `.embed(texts)`).

    path: a bundle that the export stage wrote, or a folder that convert wrote; device: `auto`, `cpu`, `cuda` or `mps`;
    engine: `torch`, or `ctranslate2`, `onnx` and their `-int8`, which use the converted model next to the bundle; None:
    the engine recorded in config.json. Raises transformer.core.errors.UserError if it is not a model.
    """
    # Imported by name: every stage imports this file, but only some should depend on the export code.
    open_bundle = import_module("transformer.inference.bundle").open_bundle
    model: Translator | Classifier | LanguageModel = open_bundle(Path(path), device, engine)
    return model
