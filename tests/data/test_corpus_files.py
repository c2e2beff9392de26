"""Files to rows: the layouts of a folder, and what is wrong with files in one line."""

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.cases import json_lines, pairs, write
from transformer.core.errors import UserError
from transformer.data import files
from transformer.data.corpus import Corpus, Fault, LeftOut, checked_rows
from transformer.data.files import read_folder, read_lines
from transformer.data.layouts import Columns

COLUMNS = ("de", "en")
ROWS = pairs(5)


def text(column: str, rows: list[dict[str, str]] = ROWS) -> bytes:
    return "".join(row[column] + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]] | pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows) if isinstance(rows, list) else rows, stream)
    return stream.getvalue()


def tsv() -> bytes:
    return ("en\tnumber\tde\n" + "".join(f"{row['en']}\t7\t{row['de']}\n" for row in ROWS)).encode()


LAYOUTS: dict[str, dict[str, bytes]] = {
    "compressed text": {"{}.de.gz": text("de"), "{}.en.gz": text("en")},
    "text": {"{}.de": text("de"), "{}.en": text("en")},
    "jsonl": {"{}.jsonl": json_lines(ROWS)},
    "compressed jsonl": {"{}.jsonl.gz": json_lines(ROWS)},
    "json": {"{}.json": json_lines(ROWS)},
    "tsv": {"{}.tsv": tsv()},
    "parquet": {"{}.parquet": parquet(ROWS)},
    "shards": {"{}-00001-of-00002.parquet": parquet(ROWS[3:]), "{}-00000-of-00002.parquet": parquet(ROWS[:3])},
    "subfolder plain_text": {"plain_text/{}-00000-of-00001.parquet": parquet(ROWS)},
}


def files_of(layout: str, *stems: str) -> dict[str, bytes]:
    return {name.format(stem): content for name, content in LAYOUTS[layout].items() for stem in stems}


def opened(folder: Path, columns: tuple[str, ...] = COLUMNS) -> Corpus:
    return read_folder(folder, columns=Columns({column: column for column in columns}))


def read(folder: Path, split: str, columns: tuple[str, ...] = COLUMNS) -> Iterator[dict[str, Any]]:
    for part in opened(folder, columns).splits[split]:
        for row in part.read():
            assert not isinstance(row, Fault)
            yield row


def fault(folder: Path) -> str:
    """The message, one line, of the UserError raised by reading everything."""
    with pytest.raises(UserError) as caught:
        for parts in opened(folder).splits.values():
            list(checked_rows(parts, dict, LeftOut()))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gives_the_rows(layout: str, tmp_path: Path) -> None:
    write(tmp_path, files_of(layout, "train", "test"))
    assert list(opened(tmp_path).splits) == ["test", "train"]
    assert list(read(tmp_path, "train")) == ROWS


@pytest.mark.parametrize(
    ("stem", "split"),
    [
        *((name, name) for name in ("train", "test_2017_flickr", "unsupervised")),
        *((name, "validation") for name in ("val", "valid", "dev")),
        ("test_2016_flickr", "test"),
    ],
)
def test_the_name_tells_the_split(stem: str, split: str, tmp_path: Path) -> None:
    write(tmp_path, files_of("text", stem))
    assert list(read(tmp_path, split)) == ROWS


def test_opus_names_may_name_a_split(tmp_path: Path) -> None:
    pairs = {f"{name}.de-en.{code}": text(code) for name in ("Books", "val") for code in COLUMNS}
    write(tmp_path, pairs | {"Books.de-fr.de": b"x", "Books.de-fr.fr": b"x"})
    assert {*opened(tmp_path).splits} == {"train", "validation"}


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    lines = ["a\u2028b", "c\x85d", "e\x0bf\x0cg", "h\ri", "", "j"]
    write(tmp_path, {"text": ("\ufeff" + "\r\n".join(lines)).encode()})
    assert list(read_lines(tmp_path / "text")) == lines


def test_a_corpus_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a line, or a file without line feeds, that a small compressed file may hold."""
    rows = [{"de": f"{number} {'lang ' * 200}", "en": "long"} for number in range(2_000)]
    kinds = {"train.jsonl.gz": json_lines(rows), "test.parquet": parquet(rows)}
    write(tmp_path, kinds)
    size = len(kinds["train.jsonl.gz"])
    del rows, kinds
    monkeypatch.setattr(files, "_PARQUET_ROWS", 100)
    for (part,) in opened(tmp_path).splits.values():
        tracemalloc.start()
        assert sum(1 for _ in checked_rows([part], dict, LeftOut())) == 2_000
        assert tracemalloc.get_traced_memory()[1] < size / 3, part.name
        tracemalloc.stop()
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    write(tmp_path, {"train.jsonl.gz": json_lines(ROWS) + b'{"de": "' + b"a" * 2_000_000})
    assert "train.jsonl.gz, line 6: 1,048,576 bytes or more: end its rows with line feeds" in fault(tmp_path)


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    assert f"the folder {tmp_path / 'none'} is missing" in fault(tmp_path / "none")
    message = fault(tmp_path)
    assert str(tmp_path) in message
    assert all(name in message for name in (".jsonl", ".tsv", ".parquet", "<split>.<language>"))
    write(tmp_path, {f"train.{ending}": b"x" for ending in ("doc", "txt", "xls", "zip")})
    assert "(it has train.doc, train.txt, train.xls and 1 more); it may" in fault(tmp_path)
    assert "train.doc is a file: `path` names the folder" in fault(tmp_path / "train.doc")


VALUES = pa.array([b"ja"] * 1500 + [b"n\xff"] + [b"ja"] * 9, pa.binary())
STRINGS = pa.Array.from_buffers(pa.string(), len(VALUES), VALUES.buffers())
NOT_UTF8 = parquet(pa.table({"de": STRINGS, "en": STRINGS}))
DOUBLED = parquet(pa.table([["a"], ["b"], ["c"]], names=["de", "en", "en"]))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train.de": b"x"}, "train.en is missing beside train.de"),
        ({"train-00001-of-00002.parquet": b""}, "train-00000-of-00002.parquet is missing"),
        (dict.fromkeys(("train-00000-of-00001.parquet", "train.parquet"), b""), "does not belong"),
        ({"train.de": text("de"), "train.en": text("en", ROWS[:3])}, "train.en has 3 lines, fewer than the other side"),
        ({"train.de": text("de", ROWS[:3]), "train.en": text("en")}, "train.de has 3 lines, fewer than the other side"),
        (
            {"train.de": text("de"), "train.en.gz": text("en")[:-3] + b"\xff\n"},
            "train.en.gz, line 5: not UTF-8 (byte 0xff",
        ),
        ({"train.de": text("de", ROWS[:4]), "train.en": text("en")[:-3] + b"\xff\n"}, "train.en, line 5: not UTF-8"),
        ({"train.de": text("de"), "train.de.gz": text("de")}, "has both train.de and train.de.gz: keep one"),
        (files_of("text", "train") | {"data/train.jsonl": json_lines(ROWS)}, "keep one"),
        (files_of("text", "test") | files_of("text", "test_2016_flickr"), "keep one"),
        ({"train.parquet": NOT_UTF8}, "train.parquet, row 1501: not UTF-8"),
        ({"train.parquet": DOUBLED}, "train.parquet has two columns `en`: rename one"),
        ({"train.parquet": parquet([{"de": "a", "fr": "b"}])}, "train.parquet has no column `en`"),
        ({"train.parquet": parquet(ROWS)[:-10]}, "train.parquet cannot be read"),
        ({"train.jsonl": json_lines(ROWS[:2]) + b"{\n"}, "train.jsonl, line 3: not JSON"),
        ({"train.jsonl": b"[" * 100_000}, "train.jsonl, line 1: not JSON"),
        ({"train.jsonl": json_lines(ROWS[:2]) + b"\n"}, "train.jsonl, line 3: a blank line"),
        ({"train.jsonl": b"[1]\n"}, "train.jsonl, line 1: not a JSON object"),
        ({"train.jsonl": b'{"de": "a", "en": "b", "en": "c"}'}, "line 1: not JSON (the key `en` occurs twice)"),
        ({"train.tsv": b"de\tfr\na\tb\n"}, "train.tsv has no column `en` (it has: de, fr)"),
        ({"train.tsv": b"de\ten\na\tb\na\tb\tc\n"}, "train.tsv, line 3: 3 columns where the header has 2"),
        ({"train.csv": b"de,en\ra,b\rc,d\r"}, "lines end with carriage returns"),
        ({"train.csv": "de,en,ü\n".encode("cp1252")}, "train.csv, line 1: not UTF-8"),
        ({"train.csv": b'de,en\na,"b" c\n'}, "train.csv, line 2: not CSV"),
        ({"train.csv": b"de,en\na,b\n\n"}, "train.csv, line 3: a blank line"),
        ({"train.csv": b'de,"en\na,b\n'}, "train.csv, line 1: not CSV"),
        ({"train.csv": b"de,en,en\na,b,c\n"}, "train.csv has two columns `en`: rename one"),
    ],
)
def test_what_is_wrong_with_files_is_one_line(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    assert message in fault(write(tmp_path, files))


def test_a_truncated_file(tmp_path: Path) -> None:
    path = write(tmp_path, files_of("compressed jsonl", "train")) / "train.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-10])
    assert f"{path} cannot be read" in fault(tmp_path)
