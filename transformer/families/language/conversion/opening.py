"""Opening of converted language models; loads neither PyTorch nor spaCy."""

from pathlib import Path
from typing import Any

from transformer.conversion.parts import read_parts
from transformer.core.errors import UserError
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.export.converted import MODEL
from transformer.families.language.conversion.engine import Sizes
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.interface import Engine
from transformer.families.language.decoding.predictor import LanguageModel, never_generated
from transformer.families.language.nn.mask_token import mask_id

CAUSAL = "causal"
"""Key among the model sizes in config.json: true if the model predicts next tokens."""


def open_converted(task: Task, folder: Path, config: dict[str, Any], threads: int | None = None) -> LanguageModel:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    params = validate(AnswerParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config)
    vocabulary = vocabularies["text"]
    if not isinstance(config[MODEL].get(CAUSAL), bool):
        raise UserError(f"{folder / 'config.json'} lacks what the model predicts: run `dvc repro` to convert it again")
    sizes = Sizes(config[MODEL][CAUSAL], positions, vocabulary.pad_id, mask_id(vocabulary), never_generated(vocabulary))
    if config["engine"].startswith("onnx"):
        from transformer.families.language.conversion.onnx_engine import OnnxEngine

        engine: Engine = OnnxEngine(folder / "model", sizes, threads=threads)
    else:
        from transformer.families.language.conversion.ctranslate2_engine import CTranslate2Engine

        engine = CTranslate2Engine(folder / "model", sizes, threads=threads)
    return LanguageModel(engine, vocabulary, folder, params)


def best_engine(config: dict[str, Any], available: list[str]) -> str:
    """Return the fastest engine that predicts as `evaluate` did.

    config: the bundle's; available: engines besides torch. None was measured to be faster than PyTorch.
    """
    return "torch"
