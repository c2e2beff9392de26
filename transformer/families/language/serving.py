"""Request parameters of a served language model; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.families.language.decoding.predictor import LanguageModel

QUESTION = "text"
"""Column of predictions.tsv with the input texts."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Return MLflow type, name and default of the request parameters: none for language models."""
    return ()


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bundle's config; requests cannot change it."""
    return {**config}


def answers(model: "LanguageModel", config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the continued or filled texts as columns."""
    return model.table(texts)
