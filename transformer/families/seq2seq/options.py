"""The console command `transformer translate`: options and output."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError
from transformer.core.task import Answer, Answering, CommandLine

if TYPE_CHECKING:
    from transformer.families.seq2seq.decode import DecodingParams
    from transformer.families.seq2seq.translator import Translation, Translator


_LEAVES = (
    ("--stopping", str, "when beam search is done with a sentence: exact, heuristic or first"),
    ("--length-normalization", str, "none, length (divide by length^A) or gnmt (by ((5 + length) / 6)^A)"),
    ("--length-penalty", float, "the exponent A of the length normalization"),
    ("--mbr-utility", str, "none, or choose from the beam by the expected bleu or chrf (minimum Bayes risk)"),
    ("--mbr-scale", float, "the power of the probabilities in that expectation; 0 counts all hypotheses alike"),
    ("--n-best", int, "print N lines per text, best first: the search's score, tab, translation; missing: -inf"),
    ("--no-repeat-ngram", int, "no sequence of N tokens occurs twice"),
    ("--max-length", int, "maximum number of target tokens"),
    ("--temperature", float, "with --sample: below 1 is more conservative, above 1 more varied"),
    ("--top-k", int, "with --sample: draw from the N most probable tokens"),
    ("--top-p", float, "with --sample: draw from the smallest set of top tokens with this probability"),
    ("--seed", int, "with --sample: random seed"),
)
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
_OF_SCORES = ("length_normalization", "length_penalty")


class TranslationCommands(CommandLine):
    """`transformer translate`."""

    def example(self, task: str, params: Mapping[str, Any], text: str) -> tuple[str, str]:
        """Return an example command and its input, given the result's parameters, by dotted name, and a text."""
        return "translate", text

    def add_options(self, parser: ArgumentParser, command: str) -> None:
        """Add options named after the leaves of `translation.evaluate`; each overrides the exported model's setting."""
        group = parser.add_argument_group("decoding", "Default: as the model was evaluated.")
        method = group.add_mutually_exclusive_group()
        method.add_argument("--greedy", dest="method", action="store_const", const="greedy", help="greedy search")
        method.add_argument("--sample", dest="method", action="store_const", const="sample", help="draw at random")
        method.add_argument("--beam", dest="beam_size", type=int, metavar="N", help="beam search with N hypotheses")
        for name, kind, text in _LEAVES:
            group.add_argument(name, type=kind, metavar={int: "N", float: "A", str: "KIND"}[kind], help=text)

    def answering(self, model: "Translator", arguments: Namespace) -> Answering:
        """Return a function from a chunk of texts to their answers. Raises UserError as `overridden` does."""
        model.decoding = overridden(model.decoding, arguments)
        if arguments.stopping is not None and not model.decoder.knows_stopping:
            raise UserError("--stopping has no effect on CTranslate2's search: use the engine onnx or torch")
        count, answered = model.decoding.n_best, 0

        def answers(texts: list[str]) -> Iterator[Answer]:
            nonlocal answered  # sampling depends on a text's number, not on how texts are chunked
            first, answered = answered, answered + len(texts)
            for found in model.translate_n_best(texts, first=first):
                scored = count > 1 or arguments.n_best is not None
                yield Answer(scored_lines(found, count) if scored else [found[0].text], found[0].notes)

        return answers


def overridden(decoding: "DecodingParams", arguments: Namespace) -> "DecodingParams":
    """Return the decoding parameters with the command line's overrides.

    Raises UserError (one line) if an option is invalid or would have no effect.
    """
    from transformer.core.validation import validate
    from transformer.families.seq2seq.decode import DecodingParams

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
        raise UserError(f"{idle} has no effect without --sample")
    if changed.method != "beam" and arguments.n_best is None and (idle := given(_OF_SCORES)):
        raise UserError(f"{idle} has no effect without --beam or --n-best")
    if changed.method != "beam" and (idle := given(("stopping", "mbr_utility", "mbr_scale"))):
        raise UserError(f"{idle} has no effect without --beam")
    if not changed.reranks and (idle := given(("mbr_scale",))):
        raise UserError(f"{idle} has no effect without an expected utility: add --mbr-utility bleu, and a beam above 1")
    if not changed.reranks and changed.mbr_utility != "none" and (idle := given(("mbr_utility",))):
        raise UserError(f"{idle} has no effect on a beam of 1: add --beam 20")
    if changed.length_normalization == "none" and (idle := given(("length_penalty",))):
        raise UserError(f"{idle} has no effect without length normalization: add --length-normalization length")


def scored_lines(translations: "Sequence[Translation]", count: int) -> list[str]:
    """Return exactly `count` lines `score<TAB>text`."""
    lines = [f"{translation.score:.4f}\t{translation.text}" for translation in translations]
    return lines + ["-inf\t"] * (count - len(lines))
