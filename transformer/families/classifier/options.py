"""The console command `transformer classify`."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line is parsed before torch is needed
    from transformer.encoded.vocabulary import Vocabulary
    from transformer.families.classifier.decoding.labels import Classifier

COMMANDS = (("classify", "classify texts, one per line: prints label, probability and text"),)
"""Names and help texts."""
_EMPTY = "note: an empty text gives no evidence: its label is what the model answers without any word"


def example(task: str, params: Mapping[str, Any], text: str) -> tuple[str, str]:
    """Return an example command and its input, given the result's parameters, by dotted name, and a text."""
    return COMMANDS[0][0], text


def add_options(parser: ArgumentParser, command: str) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--ngrams",
        type=int,
        default=0,
        metavar="N",
        help="below each text, the N n-grams that weigh most (kind `ngrams`), and by how much each favours the answer",
    )


def answering(model: "Classifier", arguments: Namespace) -> Callable[[list[str]], list[str]]:
    """Return a function from a chunk of texts to lines to print; it notes the first empty text on stderr."""
    from transformer.core.errors import UserError
    from transformer.families.classifier.decoding.with_ngrams import NgramClassifier
    from transformer.text.clean import one_line

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
            found.append(f"{answer.label}\t{answer.probability:.4f}\t{one_line(text)}")
            if isinstance(model, NgramClassifier):
                leads = model.reasons(text, answer.label, arguments.ngrams)
                found += [f"\t{lead:+.4f}\t{ngram}" for ngram, lead in leads]
        return found

    return lines


def read_by(model: "Classifier", texts: list[str]) -> "tuple[Vocabulary, list[str], int | None]":
    """Return the vocabulary, the pre-tokenized texts, and the length in tokens at which they are truncated."""
    return model.vocabulary, model.pretokenize(texts), model.scorer.positions
