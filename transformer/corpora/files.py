"""The source `files`: streams the rows of a local folder; also reads rows from Arrow record batches."""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.corpora.corpus import Corpus, Part, Row
from transformer.corpora.layouts import SplitFiles, find_splits

_FIELD = r'"[^"]*(?:""[^"]*)*"|[^"\t]*'
_QUOTED_LINE = re.compile(rf"(?:{_FIELD})(?:\t(?:{_FIELD}))*")
_QUOTED_FIELD = re.compile(rf"(?:^|\t)({_FIELD})")
_BOM = b"\xef\xbb\xbf"
_PARQUET_ROWS = 1000
# By default whole columns of a row group are prefetched, and a file may be a single row group.
_STREAMED = {"pre_buffer": False, "buffer_size": 1 << 20}


def read_folder(folder: Path, *, columns: Sequence[str]) -> Corpus:
    """The corpus in a folder, in any of the layouts that `corpora.layouts` describes.

    columns: the columns of a row; others are ignored. Raises UserError when the folder matches no layout.
    """
    found = find_splits(folder, columns=columns)
    files = {split: [path.relative_to(folder).as_posix() for path in each.paths] for split, each in found.items()}
    return Corpus(
        name=f"the folder {folder}",
        splits={split: _parts(each, columns) for split, each in found.items()},
        origin={"source": "files", "files": files},
    )


def _parts(files: SplitFiles, columns: Sequence[str]) -> list[Part]:
    if files.kind == "text":
        name = " and ".join([str(files.paths[0]), *(path.name for path in files.paths[1:])])
        return [Part(name=name, read=partial(_parallel_rows, files.paths, columns))]
    if files.kind == "jsonl":
        return [Part(name=str(path), read=partial(_json_rows, path)) for path in files.paths]
    if files.kind == "tsv":
        return [Part(name=str(path), read=partial(_tsv_rows, path, columns), first=2) for path in files.paths]
    return [Part(name=str(path), read=partial(_parquet_rows, path, columns), unit="row") for path in files.paths]


def read_lines(path: Path) -> Iterator[str]:
    r"""Stream the lines of a UTF-8 text file; `.gz` means compressed. Only \n and \r\n end a line.

    Raises UserError when the file is damaged, a line is not UTF-8, or lone \r are its only line ends.
    """
    number, content = 0, b""
    with _reading(path), gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            content = line.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                content = content.removeprefix(_BOM)
            try:
                yield content.decode()
            except UnicodeDecodeError as error:
                fault = f"byte 0x{content[error.start]:02x}"
                raise UserError(f"{path}, line {number}: not UTF-8 ({fault}); convert the file to UTF-8") from error
    if number == 1 and b"\r" in content:
        raise UserError(
            f"{path}, line 1: its only line ends are lone carriage returns (old Mac); convert it, for example with"
            " `tr '\\r' '\\n'`"
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        fault = (error.strerror if isinstance(error, OSError) else None) or error
        raise UserError(f"{path} cannot be read ({fault}): fetch it again or fix its permissions") from error


def _parallel_rows(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[Row]:
    readers = [read_lines(path) for path in paths]
    for number, lines in enumerate(zip_longest(*readers)):
        if None in lines:
            ends = zip(paths, lines, readers, strict=True)
            counts = [(path, number + (line is not None) + sum(1 for _ in rest)) for path, line, rest in ends]
            found = ", ".join(f"{path} has {count}" for path, count in counts)
            raise UserError(f"the sides have different numbers of lines ({found}): fetch both again")
        yield dict(zip(columns, lines, strict=True))


def _json_rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON ({error}); each line must be one row") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: not a JSON object; each line must be one row")
        yield row


def _tsv_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    quoted = all(_QUOTED_LINE.fullmatch(line) for line in read_lines(path))
    lines = (_fields(line, quoted=quoted) for line in read_lines(path))
    header = next(lines, [""])
    _check_columns(path, header, columns)
    for number, fields in enumerate(lines, start=2):
        if len(fields) != len(header):
            hint = "; fields must not contain line ends: use JSON lines for those" if '"' in "".join(fields) else ""
            raise UserError(f"{path}, line {number}: {len(fields)} columns where the header has {len(header)}{hint}")
        yield dict(zip(header, fields, strict=True))


def _fields(line: str, *, quoted: bool) -> list[str]:
    """The fields of a line. quoted: the file is quoted as by pandas and Excel.

    They quote every field that contains a quotation mark, so in a file with one elsewhere, quotation marks are text.
    """
    if not quoted or '"' not in line:
        return line.split("\t")
    fields = [match[1] for match in _QUOTED_FIELD.finditer(line)]
    return [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields]


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow.parquet  # imported here: the other layouts do not need to wait 0.2 s for it

    try:
        with _reading(path), pyarrow.parquet.ParquetFile(path, **_STREAMED) as file:
            _check_columns(path, file.schema_arrow.names, columns)
            yield from arrow_rows(file.iter_batches(batch_size=_PARQUET_ROWS, columns=list(columns)), name=str(path))
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} cannot be read ({' '.join(str(error).split())}): fetch it again") from error


def _check_columns(path: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    if missing := [column for column in columns if column not in found]:
        names = ", ".join(found)
        raise UserError(f"{path} has no column `{missing[0]}` (it has: {names}); TSV files need a header row")


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
