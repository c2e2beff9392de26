"""Opening of converted translation models; loads neither PyTorch nor spaCy."""

from pathlib import Path
from typing import Any

from transformer.conversion.parts import read_parts
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.decode import Search
from transformer.families.seq2seq.decoding.translator import Decoder, Translator


def open_converted(task: Task, folder: Path, config: dict[str, Any], threads: int | None = None) -> Translator:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    decoding = validate(DecodingParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config)
    source, target = vocabularies["source"], vocabularies["target"]
    if config["engine"].startswith("onnx"):
        from transformer.families.seq2seq.conversion.onnx_generator import OnnxGenerator

        generator = OnnxGenerator(folder / "model", positions=positions, source_pad_id=source.pad_id, threads=threads)
        decoder: Decoder = Search(generator, target)
    else:
        from transformer.families.seq2seq.conversion.ctranslate2_decoder import CTranslate2Decoder

        decoder = CTranslate2Decoder(folder / "model", source, target, positions=positions, threads=threads)
    return Translator(decoder, vocabularies, folder, decoding)


def best_engine(config: dict[str, Any], available: list[str]) -> str:
    """Return the fastest engine that predicts as `evaluate` did. config: the bundle's; available: other than torch."""
    from transformer.families.seq2seq.conversion.ctranslate2_decoder import answers_as_ours

    decoding = validate(DecodingParams, config["decoding"], where="config.json", prefix="decoding")
    fitting = [name for name in ("ctranslate2", "onnx") if name != "ctranslate2" or answers_as_ours(decoding)]
    return next((name for name in fitting if name in available), "torch")
