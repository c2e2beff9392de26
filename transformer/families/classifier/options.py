"""The console command `transformer classify`."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line is parsed before torch is needed
    from transformer.encoded.vocabulary import Vocabulary
    from transformer.families.classifier.decoding.labels import Classifier

COMMANDS = (("classify", "classify texts, one per line: prints label, probability and text"),)
"""Names and help texts."""
_EMPTY = "note: an empty text gives no evidence: its label is what the model answers without any word"


def add_options(parser: ArgumentParser, command: str) -> None:
    """Add nothing: `classify` has no options of its own."""


def answering(model: "Classifier", arguments: Namespace) -> Callable[[list[str]], list[str]]:
    """A function that turns texts, chunk by chunk, into lines to print; notes the first empty text on stderr."""
    from transformer.text.clean import one_line

    noted = False

    def lines(texts: list[str]) -> list[str]:
        nonlocal noted
        if not noted and not all(text.strip() for text in texts):
            print(_EMPTY, file=sys.stderr)
            noted = True
        answers = zip(model.classify(texts), texts, strict=True)
        return [f"{answer.label}\t{answer.probability:.4f}\t{one_line(text)}" for answer, text in answers]

    return lines


def read_by(model: "Classifier", texts: list[str]) -> "tuple[Vocabulary, list[str]]":
    """The vocabulary that reads texts, and the texts as it is given them."""
    return model.vocabulary, model.pretokenize(texts)
