"""Write a corpus atomically, with its provenance and checksum."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import sha256, write_json, write_rows, writing
from transformer.core.observer import Observer
from transformer.corpora.corpus import Row

CORE_SPLITS = ("train", "validation", "test")
"""Splits that every source must have; the content checksum is over these."""


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Make an empty folder at `path`, removed when the block ends; leftovers of a killed run are removed first."""
    shutil.rmtree(path, ignore_errors=True)
    with writing(path):
        path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def beside(output: Path, name: str) -> Path:
    """Return a hidden path in the same folder as `output`, for scratch data."""
    return output.with_name(f".{output.name}.{name}")


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
    with scratch_folder(beside(output, "part")) as folder:
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
        _replace(output, folder)
    return {f"{split}_rows": float(count) for split, count in counts.items()}


def _replace(output: Path, folder: Path) -> None:
    try:
        if output.exists():
            shutil.rmtree(output)
        folder.rename(output)
    except OSError as error:
        raise UserError(f"cannot replace {output}: {error.strerror}; fix its permissions or remove it") from error


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
