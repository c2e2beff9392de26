import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.cases import json_lines, pairs, write
from transformer.core.errors import UserError
from transformer.data.corpus import Corpus, Fault, LeftOut, checked_rows
from transformer.data.files import read_folder, read_lines
from transformer.data.layouts import Columns

COLUMNS = ("de", "en")
ROWS = pairs(5)


def text(column: str, rows: list[dict[str, str]] = ROWS) -> bytes:
    return "".join(row[column] + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


def tsv(rows: list[dict[str, str]] = ROWS) -> bytes:
    return ("en\tnumber\tde\n" + "".join(f"{row['en']}\t7\t{row['de']}\n" for row in rows)).encode()


LAYOUTS: dict[str, dict[str, bytes]] = {
    "compressed text": {"{}.de.gz": text("de"), "{}.en.gz": text("en")},
    "text": {"{}.de": text("de"), "{}.en": text("en")},
    "text and compressed text": {"{}.de": text("de"), "{}.en.gz": text("en")},
    "jsonl": {"{}.jsonl": json_lines(ROWS)},
    "compressed jsonl": {"{}.jsonl.gz": json_lines(ROWS)},
    "json": {"{}.json": json_lines(ROWS)},
    "tsv": {"{}.tsv": tsv()},
    "compressed tsv": {"{}.tsv.gz": tsv()},
    "parquet": {"{}.parquet": parquet(ROWS)},
    "parquet of the Hub": {"{}-00000-of-00001.parquet": parquet(ROWS)},
    "shards": {"{}-00001-of-00002.parquet": parquet(ROWS[3:]), "{}-00000-of-00002.parquet": parquet(ROWS[:3])},
    "subfolder plain_text": {"plain_text/{}-00000-of-00001.parquet": parquet(ROWS)},
    "subfolder data": {"data/{}.jsonl": json_lines(ROWS)},
}


def files_of(layout: str, *stems: str) -> dict[str, bytes]:
    return {name.format(stem): content for name, content in LAYOUTS[layout].items() for stem in stems}


def opened(folder: Path, columns: tuple[str, ...] = COLUMNS) -> Corpus:
    return read_folder(folder, columns=Columns({column: column for column in columns}))


def read(folder: Path, split: str, columns: tuple[str, ...] = COLUMNS) -> Iterator[dict[str, Any]]:
    for part in opened(folder, columns).splits[split]:
        for row in part.read():
            assert not isinstance(row, Fault)
            yield {column: row[column] for column in columns}


def fault(folder: Path) -> str:
    """The message, one line, of the UserError raised by reading everything."""
    with pytest.raises(UserError) as caught:
        for parts in opened(folder).splits.values():
            for part in parts:
                list(checked_rows([part], dict, LeftOut()))
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
        ("train", "train"), ("val", "validation"), ("valid", "validation"), ("validation", "validation"),
        ("dev", "validation"), ("test", "test"), ("test_2016_flickr", "test"),
        ("test_2017_flickr", "test_2017_flickr"), ("test_2017_mscoco", "test_2017_mscoco"),
        ("test_own", "test_own"), ("unsupervised", "unsupervised"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["text", "jsonl", "parquet of the Hub"])
def test_the_name_tells_the_split(layout: str, stem: str, split: str, tmp_path: Path) -> None:
    write(tmp_path, files_of(layout, stem))
    assert list(read(tmp_path, split)) == ROWS


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    others = ["README.md", "train.fr", "train.de.bak", "training.de", "train-00000-of-00001.jsonl", "test.lock"]
    write(tmp_path, files_of("text", "train") | dict.fromkeys(others, b"x"))
    corpus = opened(tmp_path)
    assert corpus.origin["files"] == {"train": ["train.de", "train.en"]}


@pytest.mark.parametrize("split", ["test", "val", "test_2017"])
def test_opus_names_may_name_a_split(split: str, tmp_path: Path) -> None:
    named = {f"{name}.de-en.{code}": text(code) for name in ("Books", split) for code in COLUMNS}
    write(tmp_path, named)
    assert {*opened(tmp_path).splits} == {{"val": "validation"}.get(split, split), "train"}


def test_any_language_pair(tmp_path: Path) -> None:
    write(tmp_path, {"train.fr": b"Bonjour\n", "train.pt_BR": b"Bom dia\n", "train.de": b"Tag\n"})
    assert list(read(tmp_path, "train", ("fr", "pt_BR"))) == [{"fr": "Bonjour", "pt_BR": "Bom dia"}]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    lines = ["a\u2028b", "c\x85d", "e\x0bf\x0cg", "h\ri", "", "j"]
    write(tmp_path, {"text": ("\ufeff" + "\r\n".join(lines)).encode()})
    assert list(read_lines(tmp_path / "text")) == lines


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("text") / "lines.gz"
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
    assert list(read_lines(path)) == [lines[0].removeprefix("\ufeff"), *lines[1:]]


def test_a_missing_folder(tmp_path: Path) -> None:
    assert f"the folder {tmp_path / 'none'} is missing" in fault(tmp_path / "none")


def test_an_empty_folder_names_the_layouts(tmp_path: Path) -> None:
    message = fault(tmp_path)
    assert str(tmp_path) in message
    assert all(name in message for name in (".jsonl", ".tsv", ".parquet", "<split>.<language>"))
    (tmp_path / "train" / "pos").mkdir(parents=True)
    assert "(the folder train is not read: write its texts to a table, a row for each)" in fault(tmp_path)


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"train.jsonl": json_lines(ROWS)}, ["train.de", "train.jsonl"]),
        ({"train.de.gz": text("de")}, ["train.de", "train.de.gz"]),
        ({"data/train.jsonl": json_lines(ROWS)}, ["train.de", "train.jsonl"]),
        ({"test_2016_flickr.de": text("de"), "test_2016_flickr.en": text("en")}, ["test.de", "test_2016_flickr.de"]),
    ],
)
def test_a_split_that_is_there_twice(extra: dict[str, bytes], named: list[str], tmp_path: Path) -> None:
    message = fault(write(tmp_path, files_of("text", "train", "test") | extra))
    assert all(name in message for name in [*named, "keep one", str(tmp_path)])


def test_a_missing_side(tmp_path: Path) -> None:
    assert "train.en is missing beside train.de" in fault(write(tmp_path, {"train.de": text("de")}))


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_shard(missing: int, tmp_path: Path) -> None:
    write(tmp_path, files_of("shards", "train"))
    (tmp_path / f"train-0000{missing}-of-00002.parquet").unlink()
    assert f"train-0000{missing}-of-00002.parquet is missing" in fault(tmp_path)


def test_shards_of_two_sets(tmp_path: Path) -> None:
    write(tmp_path, files_of("shards", "train") | files_of("parquet of the Hub", "train"))
    assert "does not belong" in fault(tmp_path)


@pytest.mark.parametrize(("de", "en"), [(5, 3), (3, 5), (5, 0)])
def test_unequal_line_counts(de: int, en: int, tmp_path: Path) -> None:
    write(tmp_path, {"train.de.gz": text("de", ROWS[:de]), "train.en": text("en", ROWS[:en])})
    assert f"train.de.gz has {de}, {tmp_path}/train.en has {en}" in fault(tmp_path)


@pytest.mark.parametrize("name", ["train.en", "train.en.gz"])
def test_bad_utf8_in_text(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"train.de": text("de"), name: text("en")[:-30] + b"\xff\n"})
    assert re.search(rf"{name}, line [45]: not UTF-8 \(byte 0xff\)", fault(tmp_path))


def test_bad_utf8_in_parquet(tmp_path: Path) -> None:
    values = pa.array([b"ja"] * 1500 + [b"n\xff"] + [b"ja"] * 9, pa.binary())
    strings = pa.Array.from_buffers(pa.string(), len(values), values.buffers())
    pq.write_table(pa.table({"de": strings, "en": strings}), tmp_path / "train.parquet")
    assert "train.parquet, row 1501: not UTF-8" in fault(tmp_path)


@pytest.mark.parametrize("layout", ["compressed text", "compressed jsonl", "compressed tsv", "parquet"])
@pytest.mark.parametrize("keep", [10, -10])
def test_a_truncated_file(layout: str, keep: int, tmp_path: Path) -> None:
    write(tmp_path, files_of(layout, "train"))
    path = sorted(tmp_path.iterdir())[0]
    path.write_bytes(path.read_bytes()[:keep])
    assert f"{path} cannot be read" in fault(tmp_path)


def test_what_is_no_gzip(tmp_path: Path) -> None:
    write(tmp_path, files_of("compressed jsonl", "train"))
    (tmp_path / "train.jsonl.gz").write_bytes(b"{}\n")
    assert "cannot be read" in fault(tmp_path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "not JSON"),
        (b"", "a blank line"),
        (b"[1]", "not a JSON object"),
        (b'{"de": "a", "en": "b", "en": "c"}', "the key `en` occurs twice"),
    ],
)
def test_what_is_no_json(line: bytes, says: str, tmp_path: Path) -> None:
    write(tmp_path, {"train.jsonl": json_lines(ROWS[:2]) + line + b"\n"})
    assert f"train.jsonl, line 3: {says}" in fault(tmp_path)


def test_text_beyond_the_named_columns_is_no_part_of_a_row(tmp_path: Path) -> None:
    """A spreadsheet's empty columns may hold the rest of a text that a separator cut; pandas' index has no name."""
    write(tmp_path, {"train.tsv": b"\tde\ten\t\t\n0\ta\tb\t\t \n1\tc\td\tand e\t\n"})
    assert "train.tsv, line 3: text beyond the last column with a name" in fault(tmp_path)
    write(tmp_path, {"train.tsv": b"\tde\ten\t\t\n0\ta\tb\t\t \n"})
    assert list(read(tmp_path, "train")) == [{"de": "a", "en": "b"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [("train.tsv", b"de\tfr\na\tb\n"), ("train.tsv", b""), ("train.parquet", parquet([{"de": "a", "fr": "b"}]))],
)
def test_a_missing_column(name: str, content: bytes, tmp_path: Path) -> None:
    assert re.search(rf"{name} has no column `(en|de)`", fault(write(tmp_path, {name: content})))


def test_a_table_with_the_line_ends_of_old_macs(tmp_path: Path) -> None:
    assert "lines end with carriage returns" in fault(write(tmp_path, {"train.csv": b"de,en\ra,b\rc,d\r"}))


def test_two_columns_of_one_name_in_parquet(tmp_path: Path) -> None:
    table = pa.table([["a"], ["b"], ["c"]], names=["de", "en", "en"])
    pq.write_table(table, tmp_path / "train.parquet")
    assert "train.parquet has two columns `en`: rename one" in fault(tmp_path)


def test_a_path_to_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.tsv is a file: `path` names the folder that it is in"):
        opened(write(tmp_path, {"train.tsv": tsv()}) / "train.tsv")


def test_a_tsv_line_with_another_number_of_fields(tmp_path: Path) -> None:
    write(tmp_path, {"train.tsv": b"de\ten\na\tb\na\tb\tc\n"})
    assert "train.tsv, line 3: 3 columns where the header has 2" in fault(tmp_path)


def test_files_of_no_layout_are_named_where_nothing_can_be_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", {f"train.{ending}": b"x" for ending in ("doc", "txt", "xls", "zip")})
    with pytest.raises(UserError, match=r"\(it has train.doc, train.txt, train.xls and 1 more, of no layout\); it may"):
        read_folder(folder, columns=Columns({"label": "label", "text": "text"}))
