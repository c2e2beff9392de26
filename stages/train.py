"""train: the encoded store to a model."""

from stages.allocator import take_tcmalloc

if __name__ == "__main__":
    take_tcmalloc()  # before torch is loaded

from transformer.core.stage import Stage, main
from transformer.training.stage import TrainingPaths


def train(stage: Stage) -> None:
    """data/TASK/encoded, data/TASK/vocab -> models/TASK/trained, reports/TASK/training.json and history.tsv."""
    paths = TrainingPaths(
        encoded=stage.data / "encoded",
        vocab=stage.data / "vocab",
        trained=stage.models / "trained",
        metrics=stage.reports / "training.json",
        history=stage.reports / "history.tsv",
        states=stage.states,
    )
    stage.run(paths=paths)


if __name__ == "__main__":
    main("train", train)
