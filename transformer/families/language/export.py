"""export: writes the language model as a bundle, and checks that it reproduces the scores of evaluate."""

from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoint.trained import load_config
from transformer.core.observer import Observer
from transformer.core.task import Task, words_of
from transformer.export.exporting import ExportInputs, ExportStageParams, Model, Row, export_model
from transformer.families.language.decoding.config import AnsweringParams
from transformer.families.language.decoding.predictor import LanguageModel
from transformer.families.language.nn.config import LanguageConfig

_TOLERANCE = 1e-4  # mean, of a token's log probability; summation order changes it far less
_USES = {
    "masked": ("Fills gaps in texts.", 'model.fill("The film was [MASK].")'),
    "causal": ("Continues texts.", 'model.generate("The film")'),
}


class Params(ExportStageParams):
    """The stage's parameters."""

    evaluate: AnsweringParams


def run(task: Task, params: Params, *, inputs: ExportInputs, bundle: Path, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of matching scores."""
    objective = load_config(inputs.trained, LanguageConfig).model.objective
    use, call = _USES[objective]
    words = words_of(task)
    model = Model(
        task=task,
        title=words.title,
        use=words.use.format(use=use, call=call),
        main_metric="bits_per_byte",
        higher_is_better=False,
        question="text",
    )
    return export_model(model, params, inputs=inputs, bundle=bundle, answers=_answers, observer=observer)


def _answers(model: LanguageModel, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    found = model.score([row["text"] for row in rows])
    return [
        (str(each), abs(each.log_probability - float(row["log_probability"])) <= _TOLERANCE * max(each.tokens, 1))
        for each, row in zip(found, rows, strict=True)
    ]
