"""The parameters of a classifier's training, and the weights of its classes in the loss."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import field_validator
from torch import Tensor

from transformer.core.errors import UserError
from transformer.training.config import TrainParams


class ClassifierTrainParams(TrainParams):
    """`train` of a classification task."""

    class_weights: Literal["none", "balanced"] | dict[str, float]
    """Factors of the loss by label: `balanced` makes all labels weigh the same together, N / (K N_k); or a mapping
    with every label."""

    @field_validator("class_weights", mode="before")
    @classmethod
    def _by_name(cls, weights: Any) -> Any:
        """YAML reads the labels `1` and `1.0` as numbers, as `download.labels` may have them."""
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
    """`train.class_weights` as a tensor, (K,); None if all are 1. Raises UserError for names that are not the classes.

    labels: (N,) of the training texts; a class without any weighs 0.
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
