"""CSV and TSV: what quotation marks mean is declared, each line is a row, and no row vanishes into another one."""

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.data.cases import json_lines, judge, reviews, stored, translate, write
from tests.stages import Said
from transformer.core.errors import UserError
from transformer.data.corpus import Fault
from transformer.data.files import Quotes, _records

SPLITS = ("train", "val", "test")
QUOTED = [
    {"de": 'Er sagte "ja".', "en": '"Yes", he said.'},
    {"de": '"', "en": '""'},
    {"de": "ohne", "en": "'s it"},
    {"de": "ein\tTab, ein Komma", "en": '"ganz"'},
]
OPEN, MALFORMED = "part of a quoted field with a line end", "not CSV"


def read(text: str, quotes: Quotes = "csv", separator: str = ",") -> list[Any]:
    """The rows below the header; of a fault how its reason begins."""
    _, *found = _records(iter(text.split("\n")), separator, quotes)
    return [
        next(each for each in (OPEN, MALFORMED) if each in row.reason) if isinstance(row, Fault) else row
        for row in found
    ]


@pytest.mark.parametrize(
    ("kind", "separator", "quoting", "end"),
    [("tsv", "\t", csv.QUOTE_MINIMAL, "\n"), ("csv", ",", csv.QUOTE_ALL, "\r\n")],
)
def test_a_table_that_pandas_wrote_is_read(kind: str, separator: str, quoting: Any, end: str, tmp_path: Path) -> None:
    for split in SPLITS:
        path = tmp_path / f"{split}.{kind}"
        pd.DataFrame(QUOTED).to_csv(path, sep=separator, index=False, quoting=quoting, lineterminator=end)
    found = stored(translate(tmp_path / "out", path=str(tmp_path)), "train")
    assert found == [{name: text.replace("\t", " ") for name, text in row.items()} for row in QUOTED]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('pos, "good, I think"\nneg ,bad', [["pos", "good, I think"], ["neg ", "bad"]]),
        ('a,the 5" screen\na,he said "x"', [["a", 'the 5" screen'], ["a", 'he said "x"']]),
        ('a,"a \\"b\\" c"\nd,e', [MALFORMED, ["d", "e"]]),
        ('a,"never ends', [MALFORMED]),
        ('1,"a\n\nb, c"\n2,d', [OPEN, OPEN, OPEN, ["2", "d"]]),
        ('1,"open\n0,b\n0,it is 5"\n1,c', [OPEN, OPEN, OPEN, ["1", "c"]]),  # would be one row of two fields
    ],
)
def test_quoted_fields(text: str, found: list[Any]) -> None:
    assert read(f"x,y\n{text}") == found


def test_without_quoting_marks_are_text() -> None:
    assert read('de\ten\n"Ja\tHe said "yes"\n"x"\ty', "none", "\t") == [['"Ja', 'He said "yes"'], ['"x"', "y"]]


def test_text_beyond_the_named_columns_is_no_part_of_a_row(tmp_path: Path) -> None:
    """A spreadsheet's empty columns may hold the rest of a text that a separator cut; pandas' index has no name."""
    rows = "".join(f"{number}\t{number % 2}\tFilm {number}\t\t \n" for number in range(40))
    content = f"\tlabel\ttext\t\t\n{rows}1\t1\tc\tand e\t\n".encode()
    path = str(write(tmp_path, {"train.tsv": content, "test.jsonl": json_lines(reviews(6))}))
    with pytest.raises(UserError, match=r"train\.tsv, line 42: text beyond the last column with a name"):
        judge(tmp_path, path=path)
    assert len(stored(judge(tmp_path, path=path, bad_rows="skip"), "train")) == 32


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_of_another_separator(separator: str, tmp_path: Path) -> None:
    """As Excel writes it where the comma is decimal."""
    rows = [("label", "text"), ("1", '"a; b, c"'), ("0", '"d, e"')]
    table = ("\ufeff" + "".join(f"{separator.join(row)}\n" for row in rows)).encode()
    output = judge(tmp_path, path=str(write(tmp_path / "in", {f"{split}.csv": table for split in SPLITS})))
    assert stored(output, "test") == [{"label": 1, "text": "a; b, c"}, {"label": 0, "text": "d, e"}]


def test_what_was_skipped_is_said_where_the_rest_is_refused(tmp_path: Path) -> None:
    rows, said = reviews(40), Said()
    table = "label,text\n" + "".join(f"{row['label']},{row['text']}{',x' * row['label']}\n" for row in rows)
    path = str(write(tmp_path / "in", {"train.csv": table.encode(), "test.jsonl": json_lines(rows)}))
    reason = r"only the label 0 in the rows that can be read \(\S+train\.csv, line 22: 3 col"
    with pytest.raises(UserError, match=reason):
        judge(tmp_path, path=path, bad_rows="skip")
    with pytest.raises(UserError, match="test has rows with the label 1, and train has none"):
        judge(tmp_path, said, path=path, bad_rows="skip", labels=[0, 1])
    assert "train: 20 rows left out: 3 columns where the header has 2" in said.lines
