"""export: writes the language model as a bundle, and checks that it reproduces the scores of evaluate."""

from collections.abc import Sequence

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.families.language.interface import LanguageConfig
from transformer.families.language.model import LanguageModel
from transformer.families.language.scoring import AnsweringParams
from transformer.inference.exporting import ExportStageParams, Model, Row, export_model
from transformer.nn.trained import load_config

_TOLERANCE = 1e-4  # mean, of a token's log probability; summation order changes it far less
_USES = {
    "masked": ("Fills gaps in texts.", 'model.fill("The film was [MASK].")'),
    "causal": ("Continues texts.", 'model.generate("The film")'),
}


class Params(ExportStageParams):
    """The stage's parameters."""

    evaluate: AnsweringParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of matching scores."""
    objective = load_config(paths.trained, LanguageConfig).model.objective
    use, call = _USES[objective]
    model = Model(
        task=task,
        title=task.card_title,
        use=task.card_use.format(use=use, call=call),
        main_metric="bits_per_byte",
        higher_is_better=False,
        question="text",
    )
    return export_model(model, params, paths=paths, answers=_answers, observer=observer)


def _answers(model: LanguageModel, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    found = model.score([row["text"] for row in rows])
    return [
        (str(each), abs(each.log_probability - float(row["log_probability"])) <= _TOLERANCE * max(each.tokens, 1))
        for each, row in zip(found, rows, strict=True)
    ]
