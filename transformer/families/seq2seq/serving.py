"""Request parameters of a served translation model; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError

if TYPE_CHECKING:
    from transformer.families.seq2seq.decoding.config import DecodingParams
    from transformer.families.seq2seq.decoding.translator import Translator

QUESTION = "source"
"""Column of predictions.tsv with the input texts."""
_WIDEST = 100
"""Maximum number of hypotheses per request, for memory; a model with a larger default allows that many."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Return MLflow type, name and default of the request parameters. config: the bundle's."""
    decoding = config["decoding"]
    beam_size = {"beam": decoding["beam_size"], "greedy": 1, "sample": 0}[decoding["method"]]
    return (("long", "beam_size", beam_size), ("long", "n_best", decoding["n_best"]))


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bundle's config with the decoding of a request; a beam of more than 1 means beam search.

    Raises UserError (one line) for inconsistent numbers.
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
    """Return the translations as columns. config: returned by `asked`."""
    return model.table(texts, _validated(config["decoding"]))


def _validated(decoding: dict[str, Any]) -> "DecodingParams":
    from transformer.core.validation import validate
    from transformer.families.seq2seq.decoding.config import DecodingParams

    return validate(DecodingParams, decoding, where="params", prefix="decoding")
