"""build_vocab: tokens to a vocabulary a side and the encoded store."""

from transformer.core.stage import Stage, main


def build_vocab(stage: Stage) -> None:
    """data/TASK/tokens -> data/TASK/vocab, data/TASK/encoded, reports/TASK/vocabulary.json."""
    stage.run(
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        encoded=stage.data / "encoded",
        statistics=stage.reports / "vocabulary.json",
    )


if __name__ == "__main__":
    main("build_vocab", build_vocab)
