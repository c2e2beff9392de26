"""Classification in worker processes, each with its own model."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.checkpoint.device import prepare
from transformer.core.schema import Hardware
from transformer.encoded.batching import Ids
from transformer.evaluation.inputs import EvaluationInputs
from transformer.families.classifier.decoding.labels import ClassificationParams
from transformer.families.classifier.decoding.opening import TrainedClassifier, open_trained
from transformer.text.parallel import OrderedMap

_opened: list[TrainedClassifier] = []
"""The model opened in this process."""


def open_classifier(
    inputs: EvaluationInputs, params: ClassificationParams, hardware: Hardware, classes: tuple[str, ...]
) -> None:
    """Open the trained model in this process. Raises UserError if a file is missing or broken."""
    device = prepare(hardware).device
    _opened[:] = [open_trained(inputs.trained, inputs.vocab, inputs.tokens, params, device, classes)]


def opened_classifier() -> TrainedClassifier:
    """Return the model opened by `open_classifier`."""
    return _opened[0]


def score_with(ordered_map: OrderedMap, batches: Iterable[Ids]) -> Iterator[NDArray[np.floating[Any]]]:
    """Yield the logits of each batch, in order, computed in processes that called `open_classifier`."""
    return ordered_map(_logits, batches)


def _logits(token_ids: Ids) -> NDArray[np.floating[Any]]:
    return opened_classifier().scorer.logits(token_ids)
