"""export: writes the translator as a bundle, and checks that it translates as evaluate did."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task, words_of
from transformer.export.exporting import ExportInputs, ExportParams, Model, Row, check_bundle, export_bundle
from transformer.families.seq2seq.decoding.translator import AnsweringParams, Translator
from transformer.text.pretokenize import read_pretokenizers


class Params(StageParams):
    """The stage's parameters."""

    train: Mapping[str, Any]
    evaluate: AnsweringParams
    export: ExportParams
    hardware: Hardware


def run(task: Task, params: Params, *, inputs: ExportInputs, bundle: Path, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of translations that agreed."""
    compute = prepare(params.hardware)
    languages = {side: spec.language for side, spec in read_pretokenizers(inputs.tokens).items()}
    words = words_of(task)
    model = Model(
        task=task,
        title=words.title.format(**languages),
        use=words.use.format(**languages),
        main_metric="bleu",
        question="source",
    )
    export_bundle(bundle, model, inputs, decoding=params.evaluate.model_dump(), train=params.train)
    return check_bundle(
        bundle,
        model,
        inputs.predictions,
        _answers,
        limit=params.export.verify_rows,
        device=compute.device.type,
        observer=observer,
    )


def _answers(translator: Translator, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    translations = translator.translate([row["source"] for row in rows])
    return [(text, text == row["hypothesis"]) for text, row in zip(translations, rows, strict=True)]
