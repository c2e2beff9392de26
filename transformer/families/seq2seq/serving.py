"""What a request to a served translation model may ask for; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError

if TYPE_CHECKING:
    from transformer.families.seq2seq.decoding.config import DecodingParams
    from transformer.families.seq2seq.decoding.translator import Translator

QUESTION = "source"
"""The column of predictions.tsv with the texts that a model is asked."""
_WIDEST = 100
"""The most hypotheses that a request may ask for, if the model has no more itself: each takes memory."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """MLflow type, name and default of a request's parameters. config: the bundle's."""
    decoding = config["decoding"]
    beam_size = {"beam": decoding["beam_size"], "greedy": 1, "sample": 0}[decoding["method"]]
    return (("long", "beam_size", beam_size), ("long", "n_best", decoding["n_best"]))


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle's config with the decoding that a request asks for; a beam of more than 1 is beam search.

    Raises UserError, one line, for numbers that do not fit together.
    """
    changes: dict[str, Any] = {
        name: int(params[name]) for _, name, default in params_of(config) if params.get(name) not in (None, default)
    }
    for name, number in changes.items():
        if number > (widest := max(_WIDEST, config["decoding"][name])):
            raise UserError(f"`{name}` is {number}, and a request can have at most {widest}")
    if "beam_size" in changes:
        beam = changes["beam_size"] > 1
        changes = {"method": "beam"} | changes if beam else {"method": "greedy", "n_best": 1} | changes
    decoding = config["decoding"] | changes
    return {**config, "decoding": _validated(decoding).model_dump() if changes else decoding}


def answers(model: "Translator", config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[str]]:
    """The answers as columns. config: what `asked` returned."""
    return model.table(texts, _validated(config["decoding"]))


def _validated(decoding: dict[str, Any]) -> "DecodingParams":
    from transformer.core.validation import validate
    from transformer.families.seq2seq.decoding.config import DecodingParams

    return validate(DecodingParams, decoding, where="params", prefix="decoding")
