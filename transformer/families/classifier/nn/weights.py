"""The parameters of a classifier's training, and the weights of its classes in the loss."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_validator
from torch import Tensor

from transformer.core.errors import UserError
from transformer.training.config import TrainParams


class ClassifierTrainParams(TrainParams):
    """`train` of a classification task."""

    class_weights: Literal["none", "balanced"] | dict[str, float]
    """Factors of the loss by label: `balanced` makes all labels weigh the same together, N / (K N_k); or a mapping
    with every label."""
    wide_strength: float = Field(gt=0)
    """The inverse strength of the regularization of the wide branch's weights, as scikit-learn's `C`."""
    wide_vector_strength: float = Field(default=0.01, gt=0)
    """The same of its regression along the vectors of texts."""
    wide_folds: int = Field(ge=2)
    """The network trains beside wide branches that have not seen the text: the training split in so many parts."""
    wide_block: int = Field(ge=1)
    """Neighbouring texts of train, as it is after what `download` leaves out, that are in the same part, as
    `download.validation_block`; with 1, equal texts are."""
    wide_dropout: float = Field(ge=0, lt=1)
    """Share of the texts of a batch whose wide logits are left out, so that the network answers alone."""
    network_loss: float = Field(ge=0)
    """Weight of the loss of the network alone, added to that of the sum with the wide branch."""

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
