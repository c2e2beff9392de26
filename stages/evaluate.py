"""evaluate: how good the model is on the validation and test splits, how sure that is, and where it fails."""

from pathlib import Path

from transformer.core.stage import Stage, main
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs


def evaluate(stage: Stage) -> None:
    """data/TASK, models/TASK/trained -> reports/TASK/evaluation.json, predictions.tsv, plots and tables."""
    inputs = EvaluationInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        encoded=stage.data / "encoded",
        trained=stage.models / "trained",
        baselines=Path("data", "local", "baseline", stage.data.name),
    )
    outputs = EvaluationOutputs(
        metrics=stage.reports / "evaluation.json",
        predictions=stage.reports / "predictions.tsv",
        plots=stage.reports / "plots",
        tables=stage.reports / "tables",
    )
    stage.run(inputs=inputs, outputs=outputs)


if __name__ == "__main__":
    main("evaluate", evaluate)
