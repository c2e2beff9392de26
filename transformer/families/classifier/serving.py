"""What a request to a served classifier may ask for; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.families.classifier.decoding.labels import Classifier

QUESTION = "text"
"""The column of predictions.tsv with the texts that a model is asked."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """MLflow type, name and default of a request's parameters: a classifier has none."""
    return ()


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle's config, which no request changes."""
    return {**config}


def answers(model: "Classifier", config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[str] | list[float]]:
    """The answers as columns."""
    return model.table(texts)
