"""Whether the exported model answers as the evaluated one did."""

from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path

from transformer.errors import UserError
from transformer.files import read_table


def answers_by_split(predictions: Path, limit: int | None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The first `limit` rows that evaluate wrote (None: all), a split at a time: the batches of evaluate again."""
    for split, rows in groupby(islice(read_table(predictions), limit), key=lambda row: row["split"]):
        yield split, list(rows)


def disagreement(text: str, answer: str, expected: str) -> UserError:
    """The error for a text that the exported model answers otherwise than evaluate wrote."""
    return UserError(
        f"the exported model answers {answer!r} where evaluate wrote {expected!r}, for {text[:80]!r}:"
        " its parts do not belong together; run `dvc repro --force` for evaluate and export"
    )
