"""tokenize: text to tokens."""

from transformer.core.stage import Stage, main


def tokenize(stage: Stage) -> None:
    """data/TASK/corpus -> data/TASK/tokens."""
    stage.run(corpus=stage.data / "corpus", tokens=stage.data / "tokens")


if __name__ == "__main__":
    main("tokenize", tokenize)
