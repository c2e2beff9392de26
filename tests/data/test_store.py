"""The encoded store and batches."""

from pathlib import Path

import numpy as np
import pytest

from transformer.core.errors import UserError
from transformer.data.store import (
    ColumnWriter,
    EncodedColumn,
    Sequences,
    padded,
    read_labels,
    sorted_batches,
    write_labels,
)


@pytest.mark.parametrize(("size", "dtype"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_what_is_written_is_read(size: int, dtype: type, tmp_path: Path) -> None:
    ColumnWriter(tmp_path, "text", 10).write([])
    assert len(EncodedColumn(tmp_path, "text")) == 0
    rows = [np.arange(n) + size - 20 for n in (3, 0, 15)]
    assert ColumnWriter(tmp_path, "text", size).write([Sequences.of(rows[:1]), Sequences.of(rows[1:])]) == 3
    column = EncodedColumn(tmp_path, "text")
    assert [column[i].tolist() for i in range(len(column))] == [row.tolist() for row in rows]
    assert column.lengths.tolist() == [3, 0, 15]
    assert np.load(tmp_path / "text.ids.npy").dtype == dtype
    write_labels(tmp_path, iter([0, 1, -1]))
    assert read_labels(tmp_path).tolist() == [0, 1, -1]


def test_a_broken_or_missing_store_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is missing"):
        EncodedColumn(tmp_path, "text")
    ColumnWriter(tmp_path, "text", 10).write([Sequences.of([np.arange(5)])])
    (tmp_path / "text.ids.npy").write_bytes((tmp_path / "text.ids.npy").read_bytes()[:-3])
    with pytest.raises(UserError, match=r"corrupt|do not match"):
        EncodedColumn(tmp_path, "text")


def test_a_failing_reader_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> object:
        yield Sequences.of([np.arange(3)])
        raise UserError("the source broke off")

    with pytest.raises(UserError, match="broke off"):
        ColumnWriter(tmp_path, "text", 10).write(rows())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_batches_are_longest_first_stable_and_padded() -> None:
    assert [batch.tolist() for batch in sorted_batches(np.array([1, 3, 3, 2]), 2)] == [[1, 2], [3, 0]]
    assert padded([np.array([4, 5]), np.array([6])], 9).tolist() == [[4, 5], [6, 9]]
