"""figures: draws what the trained model attends to, and what the code computes."""

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import FiguresCode
from transformer.figures.inputs import FigureInputs


def figures(stage: Stage[FiguresCode]) -> dict[str, float]:
    """data/TASK, models/TASK/trained, reports/TASK/history.tsv -> reports/TASK/figures."""
    inputs = FigureInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        trained=stage.models / "trained",
        history=stage.reports / "history.tsv",
    )
    return stage.code.run(
        stage.task, stage.params, inputs=inputs, figures=stage.reports / "figures", observer=stage.observer
    )


if __name__ == "__main__":
    main("figures", figures)
