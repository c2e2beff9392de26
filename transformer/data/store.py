"""The encoded store: a split's sentences as flat ids and offsets, memory-mapped."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, reading


class Sequences(NamedTuple):
    """Many sequences as two arrays, far cheaper to count, send and write than many small ones."""

    ids: NDArray[np.int64]
    """(M,) All sequences concatenated."""
    lengths: NDArray[np.int64]
    """(N,) The number of ids of each."""

    @classmethod
    def of(cls, sequences: Sequence[NDArray[np.int64]]) -> Self:
        """Concatenate sequences."""
        ids = np.concatenate(sequences) if sequences else np.empty(0, dtype=np.int64)
        return cls(ids, np.array([len(each) for each in sequences], dtype=np.int64))

    def split(self) -> list[NDArray[np.int64]]:
        """Split into the sequences, as views."""
        return np.split(self.ids, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []


class EncodedColumn:
    """Sequences of ids on disk; reading one touches only its own pages of the file."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises UserError when a file is missing or the two do not match."""
        self._ids = _open(folder / f"{name}.ids.npy")
        self._offsets = _open(folder / f"{name}.offsets.npy")
        if len(self._offsets) == 0 or self._offsets[-1] != len(self._ids):
            raise UserError(f"{folder}/{name}.*.npy do not match: run `dvc repro` to make them again")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int64]:
        return np.asarray(self._ids[self._offsets[index] : self._offsets[index + 1]], dtype=np.int64)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids per sequence."""
        ends: NDArray[np.int64] = np.asarray(self._offsets, dtype=np.int64)
        return ends[1:] - ends[:-1]


class ColumnWriter:
    """Writes one column as a stream, in constant memory; each file appears complete or not at all."""

    def __init__(self, folder: Path, name: str, vocabulary_size: int) -> None:
        self._folder, self._name = folder, name
        self._dtype = np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)

    def write(self, parts: Iterable[Sequences]) -> int:
        """Write all sequences; return their number."""
        with (
            atomic_write(self._folder / f"{self._name}.ids.npy") as ids,
            atomic_write(self._folder / f"{self._name}.offsets.npy") as offsets,
        ):
            position, written = 0, 0
            _header(ids, self._dtype, 0)
            _header(offsets, np.dtype(np.int64), 0)
            offsets.write(np.int64(0).tobytes())
            for part in parts:
                ids.write(part.ids.astype(self._dtype).tobytes())
                offsets.write((position + np.cumsum(part.lengths)).tobytes())
                position, written = position + len(part.ids), written + len(part.lengths)
            _header(ids, self._dtype, position)
            _header(offsets, np.dtype(np.int64), written + 1)
        return written


def write_labels(folder: Path, labels: Iterable[int]) -> None:
    """Write `label.npy`, one int8 per row."""
    content = BytesIO()
    np.save(content, np.fromiter(labels, dtype=np.int8))
    with atomic_write(folder / "label.npy") as stream:
        stream.write(content.getvalue())


def read_labels(folder: Path) -> NDArray[np.int8]:
    """Read `label.npy`, memory-mapped."""
    return _open(folder / "label.npy")


def _header(stream: Any, dtype: np.dtype[Any], length: int) -> None:
    # NumPy pads the header for any length, so the final one fits over the first.
    stream.seek(0)
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(stream, description)


def _open(path: Path) -> NDArray[Any]:
    try:
        with reading(path):
            return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is corrupt ({error}): run `dvc repro` to make it again") from error


Ids = NDArray[np.int64]


def sorted_batches(lengths: NDArray[np.int64], batch_size: int) -> list[Ids]:
    """Batch all row numbers, longest rows first; rows of equal length keep their order."""
    order = np.argsort(-lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def padded(sequences: Sequence[Ids], pad_id: int) -> Ids:
    """Pad sequences of ids at the end, into one array (B, longest)."""
    rows = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
