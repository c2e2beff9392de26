"""Rows out of Arrow record batches or tables, as Parquet files and the library `datasets` give them."""

from collections.abc import Iterable, Iterator
from typing import Any

from transformer.core.errors import UserError
from transformer.corpora.corpus import Row


def arrow_rows(batches: Iterable[Any], *, name: str) -> Iterator[Row]:
    """Stream the rows of record batches or tables of `name`. Raises UserError that names a row that is no UTF-8."""
    first = 1
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError as error:
            number = first + next(index for index in range(batch.num_rows) if not _is_text(batch.slice(index, 1)))
            raise UserError(
                f"{name}, row {number}: no UTF-8 ({error.reason}); correct it, or choose another `source`"
            ) from error
        yield from rows
        first += len(rows)


def _is_text(batch: Any) -> bool:
    try:
        batch.to_pylist()
    except UnicodeDecodeError:
        return False
    return True
