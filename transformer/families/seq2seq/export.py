"""export: writes the translator as a bundle, and checks that it reproduces the translations of evaluate."""

from collections.abc import Sequence
from pathlib import Path

from transformer.core.observer import Observer
from transformer.core.task import Task, words_of
from transformer.export.exporting import ExportInputs, ExportStageParams, Model, Row, export_model
from transformer.families.seq2seq.decoding.translator import AnsweringParams, Translator
from transformer.text.pretokenize import read_pretokenizers


class Params(ExportStageParams):
    """The stage's parameters."""

    evaluate: AnsweringParams


def run(task: Task, params: Params, *, inputs: ExportInputs, bundle: Path, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of matching translations."""
    languages = {side: spec.language for side, spec in read_pretokenizers(inputs.tokens).items()}
    words = words_of(task)
    model = Model(
        task=task,
        title=words.title.format(**languages),
        use=words.use.format(**languages),
        main_metric="bleu",
        question="source",
    )
    return export_model(model, params, inputs=inputs, bundle=bundle, answers=_answers, observer=observer)


def _answers(translator: Translator, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    translations = translator.translate([row["source"] for row in rows])
    return [(text, text == row["hypothesis"]) for text, row in zip(translations, rows, strict=True)]
