"""evaluate: scores the model on the validation and test splits, with confidence intervals and error tables."""

from pathlib import Path

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import EvaluateCode
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
from transformer.workflow.baseline import read_committed


def evaluate(stage: Stage[EvaluateCode]) -> dict[str, float]:
    """data/TASK, models/TASK/trained -> reports/TASK/evaluation.json, predictions.tsv, plots and tables."""
    inputs = EvaluationInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        encoded=stage.data / "encoded",
        trained=stage.models / "trained",
        baselines=Path("data", "local", "baseline", stage.data.name),
        committed=read_committed,
    )
    outputs = EvaluationOutputs(
        metrics=stage.reports / "evaluation.json",
        predictions=stage.reports / "predictions.tsv",
        plots=stage.reports / "plots",
        tables=stage.reports / "tables",
    )
    return stage.code.run(stage.task, stage.params, inputs=inputs, outputs=outputs, observer=stage.observer)


if __name__ == "__main__":
    main("evaluate", evaluate)
