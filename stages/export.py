"""export: the model as a self-contained folder, checked against what evaluate wrote."""

from transformer.core.stage import Stage, main
from transformer.export.exporting import ExportInputs


def export(stage: Stage) -> None:
    """data/TASK, models/TASK/trained, reports/TASK -> models/TASK/bundle."""
    inputs = ExportInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        trained=stage.models / "trained",
        training=stage.reports / "training.json",
        evaluation=stage.reports / "evaluation.json",
        predictions=stage.reports / "predictions.tsv",
    )
    stage.run(inputs=inputs, bundle=stage.models / "bundle")


if __name__ == "__main__":
    main("export", export)
