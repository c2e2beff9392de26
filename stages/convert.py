"""convert: writes the exported model in other formats, each verified against it."""

import transformer.core.start  # noqa: F401  # first
from transformer.conversion.stage import ConvertInputs, ConvertOutputs
from transformer.core.stage import Stage, main
from transformer.core.task import ConvertCode


def convert(stage: Stage[ConvertCode]) -> dict[str, float]:
    """models/TASK/bundle, reports/TASK/predictions.tsv -> models/TASK/converted, reports/TASK/conversion.json."""
    inputs = ConvertInputs(bundle=stage.models / "bundle", predictions=stage.reports / "predictions.tsv")
    outputs = ConvertOutputs(converted=stage.models / "converted", report=stage.reports / "conversion.json")
    return stage.code.run(stage.task, stage.params, inputs=inputs, outputs=outputs, observer=stage.observer)


if __name__ == "__main__":
    main("convert", convert)
