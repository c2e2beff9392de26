"""The source `files`: stream the rows of a local folder; also reads rows from Arrow record batches."""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.task import UNSUPERVISED
from transformer.data.corpus import Corpus, Fault, Part, Row
from transformer.data.layouts import Available, Columns, SplitFiles, find_splits
from transformer.data.tables import Quotes, records

_BOM = b"\xef\xbb\xbf"
_PARQUET_ROWS = 1000
_SEPARATORS = {"tsv": "\t", "csv": ",;\t"}
_BEYOND = "text beyond the last column with a name: name that column, or quote the field that the separator cuts"
LONGEST_LINE = 1 << 26
"""Bytes of a line: small compressed files may hold gigabytes."""
# By default whole columns of a row group are prefetched, and a file may be a single row group.
_STREAMED = {"pre_buffer": False, "buffer_size": 1 << 20}


def read_folder(folder: Path, *, columns: Columns, quotes: Quotes = "csv") -> Corpus:
    """Open the corpus in a folder, in any of the layouts that `data.layouts` describes.

    columns: the columns of a row; others are ignored, and `unsupervised` may lack `label`; quotes: what quotation marks
    mean in tables. Raises UserError when the folder matches no layout.
    """
    found, ignored = find_splits(folder, columns=columns.theirs)
    files = {split: [path.relative_to(folder).as_posix() for path in each.paths] for split, each in found.items()}
    return Corpus(
        name=f"the folder {folder}",
        splits={
            split: _parts(each, replace(columns, optional="label") if split == UNSUPERVISED else columns, quotes)
            for split, each in found.items()
        },
        origin={"source": "files", "files": files},
        ignored=ignored,
    )


def _label_names(path: Path, columns: Columns) -> Sequence[str]:
    """Return the class names in a Parquet file of the library `datasets`; empty if it has none."""
    if "label" not in columns.names:
        return ()
    import pyarrow.parquet

    try:
        with _reading(path):
            metadata = pyarrow.parquet.read_schema(path).metadata or {}
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return tuple(map(str, features[columns.names["label"]]["names"]))
    except (pyarrow.ArrowException, KeyError, TypeError, ValueError):  # reported when its rows are read
        return ()


def _parts(files: SplitFiles, columns: Columns, quotes: Quotes) -> list[Part]:
    if files.kind == "text":
        name = " and ".join([str(files.paths[0]), *(path.name for path in files.paths[1:])])
        return [Part(name=name, read=partial(_parallel_rows, files.paths, columns.theirs))]
    if files.kind == "jsonl":
        return [Part(name=str(path), read=partial(_json_rows, path)) for path in files.paths]
    if files.kind in _SEPARATORS:
        read = partial(_table_rows, separators=_SEPARATORS[files.kind], columns=columns, quotes=quotes)
        unit = "row" if quotes == "multiline" else "line"
        return [Part(name=str(path), read=partial(read, path), unit=unit, first=2) for path in files.paths]
    return [
        Part(
            name=str(path),
            read=partial(_parquet_rows, path, columns),
            unit="row",
            label_names=_label_names(path, columns),
        )
        for path in files.paths
    ]


def read_lines(path: Path) -> Iterator[str | Fault]:
    r"""Stream the lines of a UTF-8 text file; `.gz` means compressed. Only \n and \r\n end a line.

    A Fault is in place of a line that is not UTF-8 or has more than LONGEST_LINE bytes. Raises UserError when the file
    is damaged.
    """
    with _reading(path), gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), start=1):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                yield Fault(f"a line of more than {LONGEST_LINE:,} bytes: end its rows with line feeds")
                continue
            content = line.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                content = content.removeprefix(_BOM)
            try:
                yield content.decode()
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 (byte 0x{content[error.start]:02x}); convert the file to UTF-8"
                yield Fault(reason, content.decode(errors="replace"))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        fault = (error.strerror if isinstance(error, OSError) else None) or error
        raise UserError(f"{path} cannot be read ({fault}): fetch it again or fix its permissions") from error


def _parallel_rows(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[Row | Fault]:
    readers, first = [read_lines(path) for path in paths], ""
    for number, lines in enumerate(zip_longest(*readers)):
        for path, line in zip(paths, lines, strict=True):
            if isinstance(line, Fault):
                first = first or f"{path}, line {number + 1}: {line.reason}"
        if None in lines and first:  # in another encoding, a file may have other lines
            raise UserError(first)
        if None in lines:
            ends = zip(paths, lines, readers, strict=True)
            counts = [(path, number + (line is not None) + sum(1 for _ in rest)) for path, line, rest in ends]
            found = ", ".join(f"{path} has {count}" for path, count in counts)
            raise UserError(f"the sides have different numbers of lines ({found}): fetch both again")
        faults = [line for line in lines if isinstance(line, Fault)]
        yield faults[0] if faults else dict(zip(columns, lines, strict=True))


def _json_rows(path: Path) -> Iterator[Row | Fault]:
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object)
        except _TwiceError as error:
            yield Fault(str(error))
            continue
        except (ValueError, RecursionError) as error:
            yield Fault(f"not JSON ({error}); each line must be one row" if line.strip() else "a blank line")
            continue
        yield row if isinstance(row, dict) else Fault("not a JSON object; each line must be one row")


class _TwiceError(ValueError):
    pass


def _object(pairs: Sequence[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs) and any(row[name] != value for name, value in pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _TwiceError(f"the key `{twice}` occurs twice, with different values")
    return row


def _table_rows(path: Path, separators: str, columns: Columns, quotes: Quotes) -> Iterator[Row | Fault]:
    """Stream the rows of a table; separators: those that it may have, of which its header has the first one found.

    For CSV these are commas, or, as some countries' Excel writes, semicolons, or tabs.
    """
    first = next(read_lines(path), "")
    separator = next((each for each in separators if isinstance(first, str) and each in first), separators[0])
    if isinstance(first, str) and "\r" in first:
        raise UserError(f"{path}: its lines end with carriage returns alone; write line feeds")
    rows = records(read_lines(path), separator, quotes)
    names = next(rows, [""])
    if isinstance(names, Fault):
        raise UserError(f"{path}, line 1: {names.reason}")
    header = [name.strip() for name in names]
    _check_columns(path, dict.fromkeys(header, ()), columns)
    _check_once(path, header, columns)
    named = len(header) - next((number for number, name in enumerate(reversed(header)) if name), 0)
    for fields in rows:
        if not isinstance(fields, Fault) and any(map(str.strip, fields[named:])):
            fields = Fault(_BEYOND)
        yield fields if isinstance(fields, Fault) else dict(zip(header, fields, strict=True))


def _check_once(path: Path, header: Sequence[str], columns: Columns) -> None:
    if twice := [name for name in columns.theirs if header.count(name) > 1]:
        raise UserError(f"{path} has two columns `{twice[0]}`: rename one")


def _parquet_rows(path: Path, columns: Columns) -> Iterator[Row | Fault]:
    import pyarrow.parquet  # imported here: it takes 0.2 s, which other layouts need not wait for

    try:
        with _reading(path), pyarrow.parquet.ParquetFile(path, **_STREAMED) as file:
            top = _check_columns(path, columns_of(file.schema_arrow), columns)
            _check_once(path, file.schema_arrow.names, columns)
            yield from arrow_rows(file.iter_batches(batch_size=_PARQUET_ROWS, columns=top), name=str(path))
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} cannot be read ({' '.join(str(error).split())}): fetch it again") from error


def columns_of(schema: Any) -> Available:
    """Return the columns of an Arrow schema."""
    return {field.name: [inner.name for inner in field.type] if _is_struct(field.type) else [] for field in schema}


def _is_struct(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_struct(kind))


def _check_columns(path: Path, found: Available, columns: Columns) -> list[str]:
    if (top := columns.top(found)) is None:
        raise UserError(
            f"{path} has no column `{columns.missing(found)}` (it has: {', '.join(found)}): name it in `columns`; a"
            " table needs a header row"
        )
    return top


def arrow_rows(batches: Iterable[Any], *, name: str) -> Iterator[Row]:
    """Stream the rows of record batches or tables; name: for messages. Raises UserError for a row that is not UTF-8."""
    first = 1
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError as error:
            number = first + next(index for index in range(batch.num_rows) if not _is_text(batch.slice(index, 1)))
            raise UserError(
                f"{name}, row {number}: not UTF-8 ({error.reason}); fix it, or choose another `source`"
            ) from error
        yield from rows
        first += len(rows)


def _is_text(batch: Any) -> bool:
    try:
        batch.to_pylist()
    except UnicodeDecodeError:
        return False
    return True
