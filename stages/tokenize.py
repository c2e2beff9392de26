"""tokenize: splits text into tokens."""

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import TokenizeCode


def tokenize(stage: Stage[TokenizeCode]) -> dict[str, float]:
    """data/TASK/corpus -> data/TASK/tokens."""
    return stage.code.run(
        stage.task, stage.params, corpus=stage.data / "corpus", tokens=stage.data / "tokens", observer=stage.observer
    )


if __name__ == "__main__":
    main("tokenize", tokenize)
