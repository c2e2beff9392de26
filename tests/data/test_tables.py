"""CSV and TSV: what quotation marks mean is declared, and no row vanishes into another one."""

import csv
import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import cases
from tests.data.cases import json_lines, pairs, reviews, stored, write
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import open_task
from transformer.data import files, tables
from transformer.data.corpus import LONGEST_FIELD, Fault
from transformer.data.tables import Quotes, records

QUOTED = [
    {"de": 'Er sagte "ja".', "en": '"Yes", he said.'},
    {"de": '"', "en": '""'},
    {"de": "ohne", "en": "'s it"},
    {"de": "ein\tTab, ein Komma", "en": '"ganz"'},
]


def translate(tmp_path: Path, **changes: Any) -> Path:
    """Run the stage; gives its output."""
    return download("translation", tmp_path, cases.translation(**changes))


def judge(tmp_path: Path, **changes: Any) -> Path:
    """Run the stage; gives its output."""
    return download("sentiment", tmp_path, cases.sentiment(**changes))


def download(name: str, tmp_path: Path, params: dict[str, Any], observer: Observer | None = None) -> Path:
    """Run a task's stage; gives its output."""
    task, paths = open_task(name), Paths(data=tmp_path / "out", models=tmp_path, reports=tmp_path)
    stage = task.family.stage("download")
    stage.run(task, stage.Params.model_validate(params), paths, observer or Observer())
    return paths.corpus


def left_out(output: Path) -> dict[str, int]:
    """The reasons of train's rows that were left out, with their numbers."""
    found: dict[str, int] = read_json(output / "provenance.json")["left_out"]["train"]
    return found


def read(text: str, quotes: Quotes = "csv", separator: str = ",") -> list[Any]:
    """The records below the header; of a fault its line (None: counted by the reader) and its reason's first words."""
    _, *found = records(text.split("\n"), separator, quotes)
    return [(row.line, row.reason.split(":")[0][:20]) if isinstance(row, Fault) else row for row in found]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize("style", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("lineterminator", ["\n", "\r\n"])
def test_a_table_that_pandas_wrote_has_its_quotation_marks_undone(
    kind: str, style: Any, lineterminator: str, tmp_path: Path
) -> None:
    for split in ("train", "val", "test"):
        pd.DataFrame(QUOTED).to_csv(
            tmp_path / f"{split}.{kind}",
            sep="\t" if kind == "tsv" else ",",
            index=False,
            quoting=style,
            lineterminator=lineterminator,
        )
    found = stored(translate(tmp_path / "out", path=str(tmp_path)), "train")
    assert found == [{name: text.replace("\t", " ") for name, text in row.items()} for row in QUOTED]


def test_without_quoting_marks_are_text() -> None:
    text = 'de\ten\n"Ja\tHe said "yes"\n"x"\ty'
    assert read(text, "none", "\t") == [['"Ja', 'He said "yes"'], ['"x"', "y"]]


FIELDS = st.lists(st.text(st.sampled_from('a" ,\n')), min_size=2, max_size=2)


@given(st.lists(FIELDS))
def test_what_python_writes_is_read(rows: list[list[str]]) -> None:
    class Lines(list[str]):
        write = list.append

    written: Any = Lines()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="").writerows([["a", "b"], *rows])
    assert read("\n".join(written), "multiline") == rows


def test_blanks_around_a_quoted_field_are_not_part_of_it() -> None:
    assert read('label, text\npos, "good, I think" \nneg , "bad"') == [["pos", "good, I think"], ["neg ", "bad"]]


@pytest.mark.parametrize("odd", ['a,the 5" screen', 'a,"the first line', '"a,b', 'a,"a \\"b\\" c"', 'a,"b" c'])
@pytest.mark.parametrize("quotes", ["csv", "multiline"])
def test_a_faulty_line_costs_its_row_alone(odd: str, quotes: Quotes) -> None:
    text = f'x,y\na,"b, c"\n{odd}\nd,e\nf,"g"\nh,i'
    assert read(text, quotes) == [["a", "b, c"], (3, "a quotation mark is "), ["d", "e"], ["f", "g"], ["h", "i"]]


def test_rows_that_a_stray_mark_would_swallow_are_named() -> None:
    """Were a line not a row by declaration, these would be one row of two fields."""
    end = (None, "part of a quoted fie")
    assert read('x,y\n1,"open\n0,b\n0,it is 5"\n1,c') == [end, end, end, ["1", "c"]]


def test_line_ends_within_fields_are_read_where_declared() -> None:
    text = 'x,y\n1,"a\n\n""b"", c"\n2,d,e\n3,"f"'
    assert read(text, "multiline") == [["1", 'a\n\n"b", c'], (5, "3 columns where the "), ["3", "f"]]


def test_a_record_that_would_have_other_fields_takes_no_line_with_it() -> None:
    assert read('x,y\n1,"open\n0,b",c\n1,d', "multiline") == [
        (2, "a quotation mark is "), (3, "a quotation mark is "), ["1", "d"]
    ]  # fmt: skip


@pytest.mark.parametrize(("quotes", "lines"), [("multiline", [3]), ("csv", [3, 4])])
def test_an_undecodable_line_within_a_field_costs_its_record(quotes: Any, lines: list[int], tmp_path: Path) -> None:
    content = b'label,text\n0,a\n1,"b\n\xff, c"\n1,d\n0,e\n1,f\n'
    path = str(write(tmp_path / "in", {f"{split}.csv": content for split in ("train", "val", "test")}))
    with pytest.raises(UserError) as caught:
        judge(tmp_path, path=path, quotes=quotes)
    assert all(f"test.csv, line {line}: " in str(caught.value) for line in lines)
    assert f"fix th{'is row' if len(lines) == 1 else 'ese 2 rows'}, set" in str(caught.value)
    assert [row["text"] for row in stored(judge(tmp_path, path=path, quotes=quotes, bad_rows="skip"), "train")] == [
        "a", "d", "e", "f"
    ]  # fmt: skip


def test_a_field_that_would_never_end_is_read_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST_FIELD", 50)
    text = "x,y\n" + '1,"open\n' + "2,b\n" * 20 + '3,c"'
    assert read(text, "multiline")[:2] == [(2, "a quotation mark is "), ["2", "b"]]


def test_faults_are_counted_and_named_by_line(tmp_path: Path) -> None:
    body = [f'{row["label"]},"{row["text"]}"' for row in reviews(30)]
    body[10] = 'neg,"she said \\"never again\\", and left"'
    body[20] = '1,"a good one" indeed'
    body[25] = "1,one,more"
    content = "\n".join(["label,text", *body, ""]).encode() + b"1,\xff\n"
    path = str(write(tmp_path / "in", {"train.csv": content, "test.jsonl": json_lines(reviews(6))}))
    for quotes in ("csv", "multiline"):
        counts = left_out(judge(tmp_path / quotes, path=path, bad_rows="skip", quotes=quotes))
        assert sorted(counts.values()) == [1, 1, 2]
        with pytest.raises(UserError) as caught:
            judge(tmp_path / quotes, path=path, quotes=quotes)
        assert all(f"train.csv, line {line}: " in str(caught.value) for line in (12, 22, 27, 32))
        assert "fix these 4 rows, set `bad_rows` to skip" in str(caught.value)


def test_a_line_that_is_too_long_is_named_and_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    long = b'{"de": "' + b"a" * 50_000_000 + b'"}\n'
    content = json_lines(pairs(20)) + long + json_lines(pairs(20, "Wort"))
    write(tmp_path, {"train.jsonl.gz": content})
    assert (tmp_path / "train.jsonl.gz").stat().st_size < 100_000
    del content, long
    tracemalloc.start()
    with pytest.raises(UserError, match=r"train\.jsonl\.gz, line 21: a line of more than 1,048,576 bytes"):
        translate(tmp_path, path=str(tmp_path))
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert [*left_out(translate(tmp_path, path=str(tmp_path), bad_rows="skip")).values()] == [1]


def test_a_line_of_just_the_longest_length_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 4)
    (tmp_path / "text").write_bytes(b"abc\nabcd\nabcdefgh\nabcdefghi\nab")
    found = files.read_lines(tmp_path / "text")
    assert [line if isinstance(line, str) else None for line in found] == ["abc", None, None, None, "ab"]


def test_a_text_that_is_too_long_is_a_bad_row(tmp_path: Path) -> None:
    rows = [*pairs(20), {"de": "a" * (LONGEST_FIELD + 1), "en": "b"}]
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(json_lines(rows), 1))
    with pytest.raises(UserError, match=r"line 21: `de` has more than 10,000,000 characters: split the text"):
        translate(tmp_path, path=str(tmp_path))


class Said(Observer):
    """What a stage says."""

    def __init__(self) -> None:
        self.lines = list[str]()

    def say(self, line: str) -> None:
        """Keep the line."""
        self.lines.append(line)


def test_what_was_skipped_is_said_where_the_rest_is_refused(tmp_path: Path) -> None:
    rows = reviews(40)
    content = "label,text\n" + "".join(f"{row['label']},{row['text']}{',x' * row['label']}\n" for row in rows)
    files = {"train.csv": content.encode(), "val.jsonl": json_lines(rows[:9]), "test.jsonl": json_lines(rows[:9])}
    params, said = cases.sentiment(path=str(write(tmp_path / "in", files)), bad_rows="skip"), Said()
    params["download"]["labels"] = {"0": "negative", "1": "positive"}
    with pytest.raises(UserError, match="every row of train has the label negative"):
        download("sentiment", tmp_path, params, said)
    assert said.lines[0] == "train: 20 rows left out: 3 columns where the header has 2"
    params["download"]["labels"] = "train"
    with pytest.raises(
        UserError, match=r"only the label 0 in the rows that can be read \(\S+train\.csv, line 22: 3 col"
    ):
        download("sentiment", tmp_path, params)
