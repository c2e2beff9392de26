"""Hold out validation and test rows from train."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from transformer.core.errors import UserError
from transformer.corpora.corpus import PlacedRow, Row

Reader = Callable[[], Iterator[PlacedRow]]
Group = Callable[[Row], Any]


def hold_out(
    read: Reader, *, fraction: float, block: int, seed: int | str, label: Group, text: Group, leaf: str
) -> tuple[Reader, Reader]:
    """Split the rows that `read` streams into (kept, held out), keeping their order.

    Per `label`, the rows with the smallest keys are held out, a key being a hash of the seed and the `text`:
    identical texts of a label stay together, so that none is in both splits. With a `block` above 1, the number of
    the row's block in the source is hashed instead, whatever was left out or held out before: if the source lists
    the texts about one subject consecutively, as IMDB does for films, nearly all of them go to one side, and the
    held-out texts are as new to the model as a test.
    It takes eight bytes per row. leaf: the parameter with the fraction, for the message. The readers raise UserError
    when either side would have no row of some label.
    """

    def keyed() -> Iterator[tuple[int, PlacedRow]]:
        return ((_key(text(row) if block == 1 else row.place // block, seed), row) for row in read())

    bounds: dict[Any, int] = {}

    def select(*, held_out: bool) -> Iterator[PlacedRow]:
        if not bounds:
            bounds.update(_bounds(keyed(), fraction=fraction, label=label, leaf=leaf))
        return (row for key, row in keyed() if (key < bounds[label(row)]) is held_out)

    return lambda: select(held_out=False), lambda: select(held_out=True)


def _key(group: str | int, seed: int | str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\t{group}".encode()).digest()[:8])


def _bounds(keyed: Iterator[tuple[int, PlacedRow]], *, fraction: float, label: Group, leaf: str) -> dict[Any, int]:
    """Return, by label, the key below which rows are held out."""
    keys: dict[Any, array[int]] = defaultdict(lambda: array("Q"))
    for key, row in keyed:
        keys[label(row)].append(key)
    bounds = {}
    for name, found in keys.items():
        ordered = np.frombuffer(found, dtype=np.uint64)
        ordered.sort()  # in place: a list would take several times the memory
        bound = int(ordered[min(max(round(len(ordered) * fraction), 1), len(ordered) - 1)])
        if bound == int(ordered[0]):
            which = "" if name is None else f" with the label {name}"
            rows = "row" if len(ordered) == 1 else "rows"
            raise UserError(
                f"{len(ordered)} {rows}{which}: too few or too alike to hold out {fraction} of them; change `{leaf}` or"
                " `validation_block`, correct a misspelt label, or give the corpus a split of its own"
            )
        bounds[name] = bound
    return bounds
