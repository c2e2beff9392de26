"""The console command `transformer classify`."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from transformer.core.family import CommandLine

if TYPE_CHECKING:
    from transformer.data.vocabulary import Vocabulary
    from transformer.families.classifier.classifier import Classifier


_EMPTY = "note: an empty text gives no evidence: its label is what the model answers without any word"


class ClassifierCommands(CommandLine):
    """`transformer classify`."""

    def example(self, task: str, params: Mapping[str, Any], text: str) -> tuple[str, str]:
        """Return an example command and its input, given the result's parameters, by dotted name, and a text."""
        return "classify", text

    def add_options(self, parser: ArgumentParser, command: str) -> None:
        """Add the command's options."""
        parser.add_argument(
            "--ngrams",
            type=int,
            default=0,
            metavar="N",
            help="below each text, the N n-grams that weigh most (kind `ngrams`), and how far each favours the answer",
        )

    def answering(self, model: "Classifier", arguments: Namespace) -> Callable[[list[str]], list[str]]:
        """Return a function from a chunk of texts to lines to print; it notes the first empty text on stderr."""
        from transformer.core.errors import UserError, printable
        from transformer.data.text import one_line
        from transformer.families.classifier.torch_classifier import NgramClassifier

        if arguments.ngrams < 0:
            raise UserError(f"--ngrams ({arguments.ngrams}) must be 0 or more")
        if arguments.ngrams and not isinstance(model, NgramClassifier):
            raise UserError(f"--ngrams: the model in {arguments.model} is not one of n-grams (model.kind `ngrams`)")
        noted = False

        def lines(texts: list[str]) -> list[str]:
            nonlocal noted
            if not noted and not all(text.strip() for text in texts):
                print(_EMPTY, file=sys.stderr)
                noted = True
            found: list[str] = []
            for answer, text in zip(model.classify(texts), texts, strict=True):
                found.append(f"{printable(answer.label)}\t{answer.probability:.4f}\t{one_line(text)}")
                if isinstance(model, NgramClassifier):
                    leads = model.reasons(text, answer.label, arguments.ngrams)
                    found += [f"\t{lead:+.4f}\t{ngram}" for ngram, lead in leads]
            return found

        return lines

    def read_by(self, model: "Classifier", texts: list[str]) -> "tuple[Vocabulary, list[str], int | None]":
        """Return the vocabulary, the pre-tokenized texts, and the length in tokens at which they are truncated."""
        return model.vocabulary, model.pretokenize(texts), model.scorer.positions
