"""The console command `transformer translate`: its options, and what it answers."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError

if TYPE_CHECKING:  # the console command makes its parser before it needs torch and pydantic
    from transformer.families.seq2seq.decoding.config import DecodingParams
    from transformer.families.seq2seq.decoding.translator import Translation, Translator

COMMAND = ("translate", "translate texts, one a line")
"""Its name and its help."""
_LEAVES = (
    ("--stopping", str, "exact, heuristic or first: when a beam search leaves a sentence"),
    ("--length-normalization", str, "none, length (divide by length^A) or gnmt (by ((5 + length) / 6)^A)"),
    ("--length-penalty", float, "the A of the length normalization"),
    ("--n-best", int, "print N lines a text, best first: score, tab, translation; a missing one has the score -inf"),
    ("--no-repeat-ngram", int, "no run of N tokens occurs twice"),
    ("--max-length", int, "most target tokens"),
    ("--temperature", float, "with --sample: below 1 is surer, above 1 more varied"),
    ("--top-k", int, "with --sample: from the N most probable tokens"),
    ("--top-p", float, "with --sample: from the fewest most probable tokens that hold this probability"),
    ("--seed", int, "with --sample"),
)
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
_OF_SCORES = ("length_normalization", "length_penalty")


def add_options(parser: ArgumentParser) -> None:
    """Options named after the leaves of `translation.evaluate`; each overrides what the model was exported with."""
    group = parser.add_argument_group("decoding", "By default as the model was evaluated.")
    method = group.add_mutually_exclusive_group()
    method.add_argument("--greedy", dest="method", action="store_const", const="greedy", help="greedy search")
    method.add_argument("--sample", dest="method", action="store_const", const="sample", help="draw at random")
    method.add_argument("--beam", dest="beam_size", type=int, metavar="N", help="beam search with N hypotheses")
    for name, kind, text in _LEAVES:
        group.add_argument(name, type=kind, metavar={int: "N", float: "A", str: "KIND"}[kind], help=text)


def answering(model: "Translator", arguments: Namespace) -> Callable[[list[str]], list[str]]:
    """What turns texts, chunk by chunk, into the lines to print. Raises UserError as `overridden` does."""
    model.decoding = overridden(model.decoding, arguments)
    count, answered = model.decoding.n_best, 0

    def lines(texts: list[str]) -> list[str]:
        nonlocal answered  # a text is sampled by its number, however the texts arrive
        first, answered = answered, answered + len(texts)
        if count == 1 and arguments.n_best is None:
            return model.translate(texts, first=first)
        found = model.translate_n_best(texts, first=first)
        return [line for translations in found for line in scored_lines(translations, count)]

    return lines


def overridden(decoding: "DecodingParams", arguments: Namespace) -> "DecodingParams":
    """The decoding parameters with what the command line says instead.

    Raises UserError, one line, when it says something illegal or something that would change nothing.
    """
    from transformer.core.validation import validate
    from transformer.families.seq2seq.decoding.config import DecodingParams

    names = ["method", "beam_size", *(name[2:].replace("-", "_") for name, _, _ in _LEAVES)]
    changes: dict[str, Any] = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if "beam_size" in changes:
        changes["method"] = "beam"
    if "method" in changes:
        changes.setdefault("n_best", 1)
    changed = validate(DecodingParams, decoding.model_dump() | changes, where="command line", prefix="decoding")
    _refuse_idle(changed, arguments)
    return changed


def _refuse_idle(changed: "DecodingParams", arguments: Namespace) -> None:
    def given(names: Sequence[str]) -> str | None:
        return next((f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None), None)

    if changed.method != "sample" and (idle := given(_OF_SAMPLING)):
        raise UserError(f"{idle} changes nothing without --sample")
    if changed.method != "beam" and arguments.n_best is None and (idle := given(_OF_SCORES)):
        raise UserError(f"{idle} changes nothing without --beam or --n-best")
    if changed.method != "beam" and (idle := given(("stopping",))):
        raise UserError(f"{idle} changes nothing without --beam")
    if changed.length_normalization == "none" and (idle := given(("length_penalty",))):
        raise UserError(f"{idle} changes nothing without length normalization: add --length-normalization length")


def scored_lines(translations: "Sequence[Translation]", count: int) -> list[str]:
    """Just `count` lines `score<TAB>text`."""
    lines = [f"{translation.score:.4f}\t{translation.text}" for translation in translations]
    return lines + ["-inf\t"] * (count - len(lines))
