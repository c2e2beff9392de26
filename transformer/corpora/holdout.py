"""Holding a validation split out of train: stratified by label, seeded, and the same whatever the order of the rows."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator

from transformer.corpora.corpus import Row
from transformer.errors import UserError

Reader = Callable[[], Iterator[Row]]


def hold_out(read: Reader, *, fraction: float, seed: int) -> tuple[Iterator[Row], Iterator[Row]]:
    """Split the rows `{"label": int, "text": str}` that `read` streams into (train, validation), each in their order.

    Of each label the rows with the smallest keys are held out, a key being a hash of the seed and the text: identical
    texts of a label stay together, so that none is both trained on and validated with.
    It takes eight bytes a row. Raises UserError when either side would have no row of some label.
    """
    bounds = _bounds(read, fraction=fraction, seed=seed)

    def select(*, held_out: bool) -> Iterator[Row]:
        return (row for row in read() if (_key(row, seed) < bounds[row["label"]]) is held_out)

    return select(held_out=False), select(held_out=True)


def _key(row: Row, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\t{row['text']}".encode()).digest()[:8])


def _bounds(read: Reader, *, fraction: float, seed: int) -> dict[int, int]:
    """The key, by label, under which a row is held out."""
    keys: dict[int, array[int]] = defaultdict(lambda: array("Q"))
    for row in read():
        keys[row["label"]].append(_key(row, seed))
    bounds = {}
    for label, found in keys.items():
        ordered = sorted(found)
        bound = ordered[min(round(len(ordered) * fraction), len(ordered) - 1)]
        if bound == ordered[0]:
            raise UserError(
                f"the {len(ordered)} rows with label {label} are too few or too alike to hold out {fraction} of them: "
                "change `validation_fraction`, or give the corpus a validation split"
            )
        bounds[label] = bound
    return bounds
