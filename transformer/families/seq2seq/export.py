"""export: writes the translator as a bundle, and checks that it reproduces the translations of evaluate."""

from collections.abc import Sequence

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.data.tokenization import read_pretokenizers
from transformer.families.seq2seq.translator import AnsweringParams, Translator
from transformer.inference.exporting import ExportStageParams, Model, Row, export_model


class Params(ExportStageParams):
    """The stage's parameters."""

    evaluate: AnsweringParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of matching translations."""
    languages = {side: spec.language for side, spec in read_pretokenizers(paths.tokens).items()}
    model = Model(
        task=task,
        title=task.card_title.format(**languages),
        use=task.card_use.format(**languages),
        main_metric="bleu",
        question="source",
    )
    return export_model(model, params, paths=paths, answers=_answers, observer=observer)


def _answers(translator: Translator, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    translations = translator.translate([row["source"] for row in rows])
    return [(text, text == row["hypothesis"]) for text, row in zip(translations, rows, strict=True)]
