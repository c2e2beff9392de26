"""build_vocab: builds one vocabulary per side and the encoded store from the tokens."""

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import BuildVocabCode


def build_vocab(stage: Stage[BuildVocabCode]) -> dict[str, float]:
    """data/TASK/tokens -> data/TASK/vocab, data/TASK/encoded, reports/TASK/vocabulary.json."""
    return stage.code.run(
        stage.task,
        stage.params,
        tokens=stage.data / "tokens",
        vocab=stage.data / "vocab",
        encoded=stage.data / "encoded",
        statistics=stage.reports / "vocabulary.json",
        observer=stage.observer,
    )


if __name__ == "__main__":
    main("build_vocab", build_vocab)
