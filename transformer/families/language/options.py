"""The console commands `transformer fill` and `generate`: options and output."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError
from transformer.core.task import Answer, Answering, CommandLine
from transformer.data.text import written_words

if TYPE_CHECKING:
    from transformer.families.language.model import LanguageModel


FILL, GENERATE = "fill", "generate"
_LEAVES = (
    ("--max-length", int, "maximum number of new tokens"),
    ("--no-repeat-ngram", int, "no sequence of N tokens occurs twice"),
    ("--temperature", float, "with --sample: below 1 is more conservative, above 1 more varied"),
    ("--top-k", int, "with --sample: draw from the N most probable tokens"),
    ("--top-p", float, "with --sample: draw from the smallest set of top tokens with this probability"),
    ("--seed", int, "with --sample: random seed"),
)
_WORDS = 30  # of an example
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


class LanguageCommands(CommandLine):
    """`transformer fill` and `transformer generate`."""

    def example(self, task: str, params: Mapping[str, Any], text: str) -> tuple[str, str]:
        """Return an example command and its input, given the result's parameters, by dotted name, and a text."""
        words, space = written_words(text)
        words = words[:_WORDS]
        place = len(words) // 2
        if params[f"{task}.model.objective"] == "causal":
            return GENERATE, space.join(words[: place + 1])
        return FILL, space.join([*words[:place], "[MASK]", *words[place + 1 :]])

    def add_options(self, parser: ArgumentParser, command: str) -> None:
        """Add the options of one command."""
        missing = "; missing: 0" if command == FILL else " (fewer if there are no more)"
        parser.add_argument(
            "--n-best", type=int, metavar="N", help=f"print N answers per text, the best first{missing}"
        )
        if command == FILL:
            return
        group = parser.add_argument_group("generation", "Default: as the model was evaluated.")
        method = group.add_mutually_exclusive_group()
        method.add_argument("--greedy", dest="method", action="store_const", const="greedy", help="greedy search")
        method.add_argument("--sample", dest="method", action="store_const", const="sample", help="draw at random")
        method.add_argument("--beam", dest="beam_size", type=int, metavar="N", help="beam search with N hypotheses")
        for name, kind, text in _LEAVES:
            group.add_argument(name, type=kind, metavar={int: "N", float: "A"}[kind], help=text)

    def answering(self, model: "LanguageModel", arguments: Namespace) -> Answering:
        """Return a function from a chunk of texts to their answers. Raises UserError for invalid options."""
        return _filling(model, arguments) if arguments.command == FILL else _generating(model, arguments)


def _filling(model: "LanguageModel", arguments: Namespace) -> Answering:
    count = 1 if arguments.n_best is None else arguments.n_best
    if count < 1:
        raise UserError(f"--n-best ({count}) must be 1 or more")

    def answers(texts: list[str]) -> Iterator[Answer]:
        for text in texts:
            found = model.fill(text, count)
            lines = [f"{each.probability:.4f}\t{each.text}" for each in found] + ["0.0000\t"] * (count - len(found))
            yield Answer([found[0].text] if arguments.n_best is None else lines, found[0].notes)

    return answers


def _generating(model: "LanguageModel", arguments: Namespace) -> Answering:
    from transformer.core.validation import validate
    from transformer.families.language.scoring import AnswerParams

    names = ["method", "beam_size", "n_best", *(name[2:].replace("-", "_") for name, _, _ in _LEAVES)]
    changes: dict[str, Any] = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if "beam_size" in changes:
        changes["method"] = "beam"
    if "method" in changes:
        changes.setdefault("n_best", 1)
    decoding = model.decoding.model_dump() | changes
    model.decoding = validate(AnswerParams, decoding, where="command line", prefix="decoding")
    if model.decoding.method != "sample" and (idle := [name for name in _OF_SAMPLING if name in changes]):
        raise UserError(f"--{idle[0].replace('_', '-')} has no effect without --sample")
    answered = 0

    def answers(texts: list[str]) -> Iterator[Answer]:
        nonlocal answered  # sampling depends on a text's number, not on how texts are chunked
        first, answered = answered, answered + len(texts)
        for found in model.continuations(texts, first):
            yield Answer([each.text for each in found], found[0].notes)

    return answers
