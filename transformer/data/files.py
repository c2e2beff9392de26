"""The source `files`: stream the rows of a local folder; also reads rows from Arrow record batches."""

import csv
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
from typing import Any, Literal

from transformer.core.errors import UserError
from transformer.core.task import UNSUPERVISED
from transformer.data.corpus import LONGEST_FIELD, Corpus, Fault, Part, Row
from transformer.data.layouts import Columns, SplitFiles, find_splits

Quotes = Literal["none", "csv"]
_BOM = b"\xef\xbb\xbf"
_PARQUET_ROWS = 1000
_SEPARATORS = {"tsv": "\t", "csv": ",;\t"}
_BEYOND = "text beyond the last column with a name: name that column, or quote the field that the separator cuts"
_MARKS = "double the quotation marks within a quoted field, or set `quotes` to none where they are text"
_LINE_END = "remove it, or write the rows as JSON lines; or set `quotes` to none where quotation marks are text"
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
    unlabelled = replace(columns, optional="label")
    return Corpus(
        name=f"the folder {folder}",
        splits={
            split: _parts(files, unlabelled if split == UNSUPERVISED else columns, quotes)
            for split, files in found.items()
        },
        origin={
            "source": "files",
            "files": {
                split: [path.relative_to(folder).as_posix() for path in files.paths] for split, files in found.items()
            },
        },
        ignored=ignored,
    )


def _parts(files: SplitFiles, columns: Columns, quotes: Quotes) -> list[Part]:
    if files.kind == "text":
        name = " and ".join([str(files.paths[0]), *(path.name for path in files.paths[1:])])
        return [Part(name=name, read=partial(_parallel_rows, files.paths, columns))]
    return [_part(path, files.kind, columns, quotes) for path in files.paths]


def _part(path: Path, kind: str, columns: Columns, quotes: Quotes) -> Part:
    if kind == "parquet":
        names = _label_names(path, columns)
        return Part(name=str(path), read=partial(_parquet_rows, path, columns), unit="row", label_names=names)
    if kind in _SEPARATORS:
        read = partial(_table_rows, path, _SEPARATORS[kind], columns, quotes)
        return Part(name=str(path), read=read, first=2)
    return Part(name=str(path), read=partial(_json_rows, path, columns))


def read_lines(path: Path) -> Iterator[str | Fault]:
    r"""Stream the lines of a UTF-8 text file; `.gz` means compressed. Only \n and \r\n end a line.

    A Fault is in place of a line that is not UTF-8. Raises UserError when the file is damaged, or a line has
    LONGEST_LINE bytes.
    """
    with _reading(path), gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), start=1):
            if len(line) == LONGEST_LINE:
                raise UserError(f"{path}, line {number}: {LONGEST_LINE:,} bytes or more: end its rows with line feeds")
            content = line.removesuffix(b"\n").removesuffix(b"\r")
            try:
                yield (content.removeprefix(_BOM) if number == 1 else content).decode()
            except UnicodeDecodeError as error:
                yield Fault(f"not UTF-8 (byte 0x{error.object[error.start]:02x}); convert the file to UTF-8")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        fault = (error.strerror if isinstance(error, OSError) else None) or error
        raise UserError(f"{path} cannot be read ({fault}): fetch it again or fix its permissions") from error


def _parallel_rows(paths: Sequence[Path], columns: Columns) -> Iterator[Row | Fault]:
    first = ""
    for number, lines in enumerate(zip_longest(*map(read_lines, paths))):
        faults = [line for line in lines if isinstance(line, Fault)]
        if faults and not first:
            first = f"{paths[lines.index(faults[0])]}, line {number + 1}: {faults[0].reason}"
        if None in lines and first:  # in another encoding, a file may have other lines
            raise UserError(first)
        if None in lines:
            short = paths[lines.index(None)]
            raise UserError(f"{short} has {number} lines, fewer than the other side: fetch both again")
        yield faults[0] if faults else dict(zip(columns.names, lines, strict=True))


def _json_rows(path: Path, columns: Columns) -> Iterator[Row | Fault]:
    """Stream the rows of JSON lines.

    With `json`: Arrow and pandas want one type in each column, and number a fault's row within its block, if at all.
    """
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            yield Fault(f"not JSON ({error}); each line must be one row" if line.strip() else "a blank line")
            continue
        yield columns.row(row) if isinstance(row, dict) else Fault("not a JSON object; each line must be one row")


def _object(pairs: Sequence[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError(f"the key `{Counter(name for name, _ in pairs).most_common(1)[0][0]}` occurs twice")
    return row


def _table_rows(path: Path, separators: str, columns: Columns, quotes: Quotes) -> Iterator[Row | Fault]:
    """Stream the rows of a table, one per line.

    separators: those that it may have, of which its header has the first one found: for CSV commas, or, as some
    countries' Excel writes, semicolons, or tabs.
    """
    first = next(read_lines(path), "")
    if isinstance(first, Fault):
        raise UserError(f"{path}, line 1: {first.reason}")
    if "\r" in first:
        raise UserError(f"{path}: its lines end with carriage returns alone; write line feeds")
    separator = next((each for each in separators if each in first), separators[0])
    records = _records(read_lines(path), separator, quotes)
    names = next(records, [""])
    if isinstance(names, Fault):
        raise UserError(f"{path}, line 1: {names.reason}")
    header = [name.strip() for name in names]
    columns.of_table(str(path), [(name, ()) for name in header])
    named = max((number for number, name in enumerate(header, start=1) if name), default=len(header))
    for fields in records:
        if isinstance(fields, Fault):
            yield fields
        elif len(fields) != len(header):
            yield Fault(f"{len(fields)} columns where the header has {len(header)}" if fields else "a blank line")
        elif any(map(str.strip, fields[named:])):
            yield Fault(_BEYOND)
        else:
            yield columns.row(dict(zip(header, fields, strict=True)))


def _records(lines: Iterator[str | Fault], separator: str, quotes: Quotes) -> Iterator[list[str] | Fault]:
    """Yield the fields of each line of a table, or a Fault; all lines of a quoted field with a line end are faults.

    With `csv`: pandas and Arrow join such lines to one row, which one stray mark makes of many; take text behind a
    closing mark, and fewer fields than the header's, as they are; and do not say in which line a fault is.
    """
    faults: list[Fault] = []

    def texts() -> Iterator[str]:
        for line in lines:
            faults.extend([line] if isinstance(line, Fault) else [])
            yield "" if isinstance(line, Fault) else line.replace("\r", " ")  # which ends a line for `csv`

    csv.field_size_limit(LONGEST_FIELD)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if quotes == "none" else csv.QUOTE_MINIMAL
    reader = csv.reader(texts(), delimiter=separator, quoting=quoting, skipinitialspace=True, strict=True)
    while True:
        faults.clear()
        start = reader.line_num
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.append(Fault(f"not CSV ({error}): {_MARKS}"))
        else:
            if reader.line_num - start > 1:
                faults.append(Fault(f"part of a quoted field with a line end: {_LINE_END}"))
        yield from [faults[0]] * (reader.line_num - start) if faults else [fields]


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


def _parquet_rows(path: Path, columns: Columns) -> Iterator[Row | Fault]:
    import pyarrow.parquet  # imported here: it takes 0.2 s, which other layouts need not wait for

    try:
        with _reading(path), pyarrow.parquet.ParquetFile(path, **_STREAMED) as file:
            names = columns.of_table(str(path), fields_of(file.schema_arrow))
            yield from arrow_rows(file.iter_batches(batch_size=_PARQUET_ROWS, columns=names), columns)
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} cannot be read ({' '.join(str(error).split())}): fetch it again") from error


def fields_of(schema: Any) -> list[tuple[str, Sequence[str]]]:
    """Return the columns of an Arrow schema, each with its inner names if it is a struct."""
    import pyarrow

    return [
        (each.name, [inner.name for inner in each.type] if pyarrow.types.is_struct(each.type) else ())
        for each in schema
    ]


def arrow_rows(batches: Iterable[Any], columns: Columns) -> Iterator[Row | Fault]:
    """Stream the rows of record batches or tables; a Fault is in place of a row that is not UTF-8."""
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError:
            rows = [_arrow_row(batch.slice(index, 1)) for index in range(batch.num_rows)]
        yield from (row if isinstance(row, Fault) else columns.row(row) for row in rows)


def _arrow_row(batch: Any) -> Row | Fault:
    try:
        [row] = batch.to_pylist()
    except UnicodeDecodeError as error:
        return Fault(f"not UTF-8 ({error.reason})")
    return dict(row)
