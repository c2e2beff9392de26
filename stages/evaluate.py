"""evaluate: the model's scores on the validation and test splits."""

from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
from transformer.workflow import Stage, main


def evaluate(stage: Stage) -> None:
    """data/TASK, models/TASK/trained -> reports/TASK/evaluation.json, predictions.tsv and plots."""
    inputs = EvaluationInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        encoded=stage.data / "encoded",
        trained=stage.models / "trained",
    )
    outputs = EvaluationOutputs(
        metrics=stage.reports / "evaluation.json",
        predictions=stage.reports / "predictions.tsv",
        plots=stage.reports / "plots",
    )
    stage.run(inputs=inputs, outputs=outputs)


if __name__ == "__main__":
    main("evaluate", evaluate)
