"""Training parameters of classifiers, and class weights of the loss."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import field_validator
from torch import Tensor

from transformer.core.errors import UserError
from transformer.training.schedule import TrainParams


class ClassifierTrainParams(TrainParams):
    """`train` of a classification task."""

    class_weights: Literal["none", "balanced"] | dict[str, float]
    """Loss weights by label: `balanced` gives all labels the same total weight, N / (K N_k); or a
    mapping with every label."""

    @field_validator("class_weights", mode="before")
    @classmethod
    def _by_name(cls, weights: Any) -> Any:
        """Turn numeric labels into text: YAML reads `1` and `1.0`, valid in `download.labels`, as numbers."""
        if not isinstance(weights, Mapping):
            return weights
        whole = {label: int(label) for label in weights if isinstance(label, float) and label.is_integer()}
        return {str(whole.get(label, label)): weight for label, weight in weights.items()}

    @field_validator("class_weights")
    @classmethod
    def _positive(cls, weights: str | dict[str, float]) -> str | dict[str, float]:
        if isinstance(weights, dict) and not all(0 < weight < float("inf") for weight in weights.values()):
            raise ValueError("every weight must be above 0")
        return weights


def class_weights(
    given: str | Mapping[str, float], classes: Sequence[str], labels: NDArray[np.int8], device: torch.device
) -> Tensor | None:
    """Return `train.class_weights` as a tensor, (K,); None if all are 1. Raises UserError for other names.

    labels: (N,) of the training texts; with `balanced`, a class without texts has weight 0.
    """
    if given == "none":
        return None
    if isinstance(given, Mapping):
        if {*given} != {*classes}:
            raise UserError(
                f"train.class_weights must have exactly the labels {', '.join(classes)}, not {', '.join(given)}"
            )
        return torch.tensor([given[name] for name in classes], device=device)
    counts = np.bincount(labels, minlength=len(classes))
    weights = np.where(counts, len(labels) / (len(classes) * counts.clip(1)), 0)
    return torch.from_numpy(weights.astype(np.float32)).to(device)
