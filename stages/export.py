"""export: writes the model as a self-contained folder, verified against what evaluate wrote."""

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import ExportCode
from transformer.export.exporting import ExportInputs


def export(stage: Stage[ExportCode]) -> dict[str, float]:
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
    return stage.code.run(
        stage.task, stage.params, inputs=inputs, bundle=stage.models / "bundle", observer=stage.observer
    )


if __name__ == "__main__":
    main("export", export)
