"""The console command `transformer classify`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from transformer.core.task import Answer, Answering, CommandLine

if TYPE_CHECKING:
    from transformer.families.classifier.classifier import Classifier


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

    def answering(self, model: "Classifier", arguments: Namespace) -> Answering:
        """Return a function from a chunk of texts to their answers. Raises UserError for invalid options."""
        from transformer.core.errors import UserError, printable
        from transformer.data.text import one_line
        from transformer.families.classifier.torch_classifier import NgramClassifier

        if arguments.ngrams < 0:
            raise UserError(f"--ngrams ({arguments.ngrams}) must be 0 or more")
        if arguments.ngrams and not isinstance(model, NgramClassifier):
            raise UserError(f"--ngrams: the model in {arguments.model} is not one of n-grams (model.kind `ngrams`)")

        def answers(texts: list[str]) -> Iterator[Answer]:
            for answer, text in zip(model.classify(texts), texts, strict=True):
                lines = [f"{printable(answer.label)}\t{answer.probability:.4f}\t{one_line(text)}"]
                if isinstance(model, NgramClassifier):
                    leads = model.reasons(text, answer.label, arguments.ngrams)
                    lines += [f"\t{lead:+.4f}\t{ngram}" for ngram, lead in leads]
                yield Answer(lines, answer.notes)

        return answers
