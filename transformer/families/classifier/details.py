"""What a server tells besides a label: every label's probability, and the words that decide."""

from typing import Any

import numpy as np

from transformer.core.observer import Observer
from transformer.data.text import given_texts, one_line, written_words
from transformer.families.classifier.classifier import Classifier, class_logits, softmax
from transformer.inference.details import rounded

_MOST = 100  # parts of a text that are left out in turn
_BATCH = 16
_LONGEST = 20_000  # characters, of which a hundred copies are read


def details(classifier: Classifier, text: str) -> dict[str, Any]:
    """Return the `labels` with their probabilities, the likeliest first, and the `words` with what they contribute.

    A word's contribution is by how much the answer's log odds fall when the word is left out of the text (occlusion),
    with the answer's probability then. Words are left out one at a time, or, of a long text, some neighbours at a time:
    words that decide only together, or that say the same twice, seem to contribute little. A text of over 20,000
    characters has no `words`.
    """
    (text,) = map(one_line, given_texts([text]))
    words, space = written_words(text) if len(text) <= _LONGEST else ([], "")
    size = -(-len(words) // _MOST) or 1
    starts = range(0, len(words), size)
    without = [space.join([*words[:start], *words[start + size :]]) for start in starts]
    sequences = classifier.encode([text, *without])
    logits = class_logits(classifier.scorer, sequences, batch_size=_BATCH, observer=Observer())
    probabilities, answer = softmax(logits), int(logits[0].argmax())
    if logits.shape[1] == 2 and probabilities[0, 1] >= 0.5:  # as `prediction` decides a tie
        answer = 1
    odds = logits[:, answer] - np.logaddexp.reduce(np.delete(logits, answer, axis=1), axis=1)
    labels = sorted(zip(classifier.classes, rounded(probabilities[0]), strict=True), key=lambda pair: -pair[1])
    return {
        "labels": [{"label": label, "probability": probability} for label, probability in labels],
        "answer": classifier.classes[answer],
        "words": [
            {
                "text": space.join(words[start : start + size]),
                "contribution": rounded(odds[0] - odds[place]),
                "probability": rounded(probabilities[place, answer]),
            }
            for place, start in enumerate(starts, start=1)
        ],
    }
