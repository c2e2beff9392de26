"""A corpus as read from its source: splits that can be read repeatedly, and row validation."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from transformer.core.errors import UserError
from transformer.core.files import sha256, write_json, write_rows, writing
from transformer.core.observer import Observer
from transformer.data.text import one_line, visible

Row = dict[str, Any]
Check = Callable[[Row], Row]
"""Returns the row as it is to be stored; raises ValueError with the reason if it is invalid."""


LONGEST_FIELD = 10_000_000
"""Characters of a text: a novel has one million. Beyond it, something is wrong with the file, and memory at risk."""


class Fault(NamedTuple):
    """Placeholder for a row or a line that cannot be read."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a split, such as one file. Each call of `read` starts at its first row."""

    name: str
    read: Callable[[], Iterator[Row | Fault]]
    unit: str = "line"
    first: int = 1
    """The number of the first row, in units: a TSV file's rows start on line 2."""
    label_names: Sequence[str] = ()
    """Names of the classes in its column `label`, from 0 on, if it has any."""

    def where(self, number: int) -> str:
        """Return the location of a row, for messages."""
        return f"{self.name}, {self.unit} {number}"


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The contents of a source: the parts of each split, and their origin for provenance.json."""

    name: str
    splits: Mapping[str, Sequence[Part]]
    origin: Mapping[str, Any]
    added: Sequence[Part] = ()
    """Additional training rows, none of which may equal or nearly equal a row of validation or test."""
    ignored: Sequence[str] = ()
    """Files of the source that belong to no split."""

    def require(self, splits: Iterable[str]) -> None:
        """Raise UserError when one of these splits is missing."""
        if missing := [split for split in splits if split not in self.splits]:
            found = ", ".join(self.splits) or "none"
            raise UserError(
                f"{self.name} has no split `{missing[0]}` (it has: {found}): add it, or choose another `source`"
            )


_SHOWN = 10


@dataclass
class LeftOut:
    """Rows left out of one split: how many for each reason, and where the first ones are."""

    bad_rows: Literal["stop", "skip"] = "stop"
    """Action on a bad row; `filter` leaves rows out in either case."""
    counts: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def add(self, place: str, reason: str) -> None:
        """Count a row. The part after `, not`, which quotes its value, is not part of the reason."""
        self.counts[reason.partition(", not ")[0]] += 1
        if len(self.shown) < _SHOWN:
            self.shown.append(f"{place}: {reason}")

    def lines(self, split: str) -> list[str]:
        """Say how many rows were left out, and where the first ones are."""
        counts = [f"{split}: {count:,} rows left out: {reason}" for reason, count in self.counts.items()]
        return [*counts, *(f"  {line}" for line in self.shown)]


class PlacedRow(dict[str, Any]):
    """A row with its position in the source."""

    place: int
    """In the split, from 0 on, counting rows that are left out."""
    where: str
    """Location, for messages."""


def checked_rows(parts: Sequence[Part], check: Check, left_out: LeftOut) -> Iterator[PlacedRow]:
    """Stream the valid rows of a split; bad ones are skipped if `left_out` says so.

    Otherwise raises UserError at the end of a part with bad rows: one line with the first of them and their number.
    """
    place = -1
    for part in parts:
        bad = LeftOut()
        for number, row in enumerate(part.read(), start=part.first):
            place += 1
            try:
                if isinstance(row, Fault):
                    raise ValueError(row.reason)
                checked = PlacedRow(check(row))
            except ValueError as error:
                for each in (bad, left_out):
                    each.add(part.where(number), str(error))
                continue
            if not bad.counts or left_out.bad_rows == "skip":
                checked.place, checked.where = place, part.where(number)
                yield checked
        if bad.counts and left_out.bad_rows == "stop":
            count = bad.counts.total()
            more = f"; and {count - _SHOWN:,} more" if count > _SHOWN else ""
            rows = "this row" if count == 1 else f"these {count:,} rows"
            raise UserError(
                f"{'; '.join(bad.shown)}{more}; fix {rows}, set `bad_rows` to skip, or choose another `source`"
            )


def clean_text(row: Row, column: str) -> str:
    """Return one column's text, stripped and on one line: runs of tabs or line separators become a space.

    Raises ValueError when it is missing, not text, longer than LONGEST_FIELD, has nothing that can be seen, or contains
    what cannot be stored (NUL, a lone surrogate).
    """
    if column not in row:
        raise ValueError(f"`{column}` is missing")
    text = row[column]
    if not isinstance(text, str):
        raise ValueError(f"`{column}` must be text, not {type(text).__name__}")
    if len(text) > LONGEST_FIELD:
        raise ValueError(f"`{column}` has more than {LONGEST_FIELD:,} characters: split the text into rows")
    text = one_line(text)
    if not visible(text[:100]) and not visible(text):  # nearly every text has something to see at its beginning
        raise ValueError(f"`{column}` is empty")
    return storable(text, column)


def storable(text: str, column: str) -> str:
    """Return the text. Raises ValueError if it contains characters that cannot be stored."""
    if "\0" in text:
        raise ValueError(f"`{column}` has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"`{column}` has a lone surrogate, U+{ord(text[error.start]):04X}") from error
    return text


CORE_SPLITS = ("train", "validation", "test")
"""Splits that every source must have; the content checksum is over these."""


@contextmanager
def scratch_folder(output: Path, name: str) -> Iterator[Path]:
    """Make an empty hidden folder beside `output`, removed when the block ends, as are a killed run's leftovers."""
    path = output.with_name(f".{output.name}.{name}")
    shutil.rmtree(path, ignore_errors=True)
    with writing(path):
        path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_corpus(
    output: Path,
    splits: Mapping[str, Iterator[Row]],
    *,
    origin: Mapping[str, Any],
    more: Callable[[Path], Mapping[str, Any]] = lambda folder: {},
    expected_sha256: str | None,
    observer: Observer,
) -> dict[str, float]:
    """Write `<split>.jsonl` and `provenance.json` into the folder `output`, replacing what was there.

    splits: the checked rows, read one split after the other; origin: the source's entries in provenance.json; more:
    returns further entries, given the folder with all rows.
    Returns the number of rows per split. Raises UserError, and leaves `output` as it was, when the source fails or
    the checksum of the content is not the expected one.
    """
    with scratch_folder(output, "part") as folder:
        counts = {
            split: write_rows(folder / f"{split}.jsonl", iter(observer.progress(rows, total=None, what=split)))
            for split, rows in splits.items()
        }
        if empty := [split for split, count in counts.items() if not count]:
            raise UserError(f"the split `{empty[0]}` has no rows: check the source of the corpus")
        content = content_sha256(folder)
        if expected_sha256 not in (None, content):
            raise UserError(
                f"the corpus is not the expected one: its content_sha256 is {content}, expected {expected_sha256}; "
                "fetch it again, or set `expected_sha256` to this value or to null"
            )
        checksums = {split: sha256(folder / f"{split}.jsonl") for split in counts}
        provenance = {"rows": counts, "sha256": checksums, "content_sha256": content}
        write_json(folder / "provenance.json", {**origin, **more(folder), **provenance})
        with writing(output):
            if output.exists():
                shutil.rmtree(output)
            folder.rename(output)
    return {f"{split}_rows": float(count) for split, count in counts.items()}


def content_sha256(folder: Path) -> str:
    """Compute an order-independent checksum of train, validation and test: the sum of the rows' SHA-256.

    So it is the same if the Hub and the files order the rows differently, or only one has additional test splits.
    """
    total = 0
    for split in CORE_SPLITS:
        with (folder / f"{split}.jsonl").open("rb") as stream:
            for line in stream:
                total += int.from_bytes(hashlib.sha256(split.encode() + b"\t" + line).digest())
    return f"{total % (1 << 256):064x}"
