"""Which tokens a discriminator takes for replaced ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.families.language.decoding.interface import Engine, Floats
from transformer.families.language.decoding.scoring import framed, windows


class Detection(NamedTuple):
    """One token of a text."""

    token: str
    probability: float
    """That the token is not the text's own."""


def judged(engine: Engine, sequences: Sequence[Ids], batch_size: int) -> list[Floats]:
    """The probability that it was replaced, for each token of windows that fit into the context: (T,) each."""
    found: list[Floats] = [np.empty(0)] * len(sequences)
    for rows in sorted_batches(np.array([len(ids) for ids in sequences], dtype=np.int64), batch_size):
        probabilities = engine.detected(padded([sequences[row] for row in rows], engine.pad_id))
        for number, row in enumerate(rows):
            found[row] = probabilities[number, : len(sequences[row])].astype(np.float64)
    return found


def detections(engine: Engine, ids: Ids, batch_size: int) -> Floats:
    """The probabilities of a text's tokens between begin and end token, (T - 2,), read in windows side by side."""
    size = engine.positions - 2
    parts = [framed(ids, start, stop) for start, stop, _ in windows(len(ids) - 2, size, None)]
    return np.concatenate([np.empty(0), *(each[1:-1] for each in judged(engine, parts, batch_size))])
