"""train: trains a model on the encoded store."""

import transformer.core.start  # noqa: F401  # first
from stages.allocator import take_tcmalloc

if __name__ == "__main__":
    take_tcmalloc()  # before torch is loaded

from transformer.core.code import code_at_start, updates_code
from transformer.core.stage import Stage, main
from transformer.core.task import TrainCode
from transformer.training.stage import TrainingPaths


def train(stage: Stage[TrainCode]) -> dict[str, float]:
    """data/TASK/encoded, data/TASK/vocab -> models/TASK/trained; training.json and two tables in reports/TASK."""
    paths = TrainingPaths(
        encoded=stage.data / "encoded",
        vocab=stage.data / "vocab",
        trained=stage.models / "trained",
        metrics=stage.reports / "training.json",
        history=stage.reports / "history.tsv",
        updates=stage.reports / "updates.tsv",
        states=stage.states,
        code=updates_code(code_at_start(), stage.task),
    )
    return stage.code.run(stage.task, stage.params, paths=paths, observer=stage.observer)


if __name__ == "__main__":
    main("train", train)
