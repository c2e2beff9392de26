"""Request parameters of a served classifier; importable without the rest of the family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.families.classifier.decoding.labels import Classifier

QUESTION = "text"
"""Column of predictions.tsv with the input texts."""


def params_of(config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Return MLflow type, name and default of the request parameters: none for classifiers."""
    return ()


def asked(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bundle's config; requests cannot change it."""
    return {**config}


def answers(model: "Classifier", config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[str] | list[float]]:
    """Return the predictions as columns."""
    return model.table(texts)
