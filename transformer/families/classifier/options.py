"""The console command `transformer classify`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the console command makes its parser before it needs torch
    from transformer.families.classifier.decoding.labels import Classifier

COMMAND = ("classify", "classify texts, one a line: label, probability and text")
"""Its name and its help."""


def add_options(parser: ArgumentParser) -> None:
    """It has none of its own."""


def answering(model: "Classifier", arguments: Namespace) -> Callable[[list[str]], list[str]]:
    """What turns texts, chunk by chunk, into the lines to print."""

    def lines(texts: list[str]) -> list[str]:
        answers = zip(model.classify(texts), texts, strict=True)
        return [f"{answer.label}\t{answer.probability:.4f}\t{text}" for answer, text in answers]

    return lines
