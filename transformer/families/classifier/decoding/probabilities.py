"""Class probabilities of many texts."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, pad, sorted_batches
from transformer.families.classifier.nn.interface import ClassifierModel


def class_probabilities(
    model: ClassifierModel, sequences: Sequence[Ids], *, batch_size: int, observer: Observer
) -> NDArray[np.float64]:
    """The softmax of the logits of each text, (N, K), in the order of `sequences`.

    sequences: ids, none longer than the model's positions. Rounded to 6 decimals: below that, batches of another
    size sum in another order.
    """
    device = next(model.parameters()).device
    result = np.zeros((len(sequences), model.config.classes))
    batches = sorted_batches(np.array([len(sequence) for sequence in sequences]), batch_size)
    model.eval()
    with torch.inference_mode():
        for rows in observer.progress(batches, total=len(batches), what="classify"):
            logits = model(pad([sequences[row] for row in rows], model.config.pad_id).to(device))
            result[rows] = logits.cpu().double().softmax(dim=-1).numpy()
    return result.round(6)
