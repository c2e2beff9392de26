"""figures: what the trained model attends to, and what the code computes, as pictures."""

from transformer.core.stage import Stage, main
from transformer.figures.inputs import FigureInputs


def figures(stage: Stage) -> None:
    """data/TASK, models/TASK/trained, reports/TASK/history.tsv -> reports/TASK/figures."""
    inputs = FigureInputs(
        corpus=stage.data / "corpus",
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        trained=stage.models / "trained",
        history=stage.reports / "history.tsv",
    )
    stage.run(inputs=inputs, figures=stage.reports / "figures")


if __name__ == "__main__":
    main("figures", figures)
