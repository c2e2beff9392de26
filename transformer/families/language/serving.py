"""What a request to a served language model may ask for; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.families.language.decoding.predictor import LanguageModel

QUESTION = "text"
"""The column of predictions.tsv with the texts that a model is asked."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """MLflow type, name and default of a request's parameters: a language model has none."""
    return ()


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle's config, which no request changes."""
    return {**config}


def answers(model: "LanguageModel", config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[str]]:
    """The answers as columns: the texts continued, or with their gaps filled."""
    return model.table(texts)
