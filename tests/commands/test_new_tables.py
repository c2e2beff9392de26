"""`transformer new-corpus` on tables: what their quotation marks mean, and which rows cannot be used."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.commands.test_new_corpus import project
from tests.data.cases import write
from tests.kit import profile_values
from transformer.commands import rehearsal
from transformer.commands.new_corpus import new_corpus, quoting
from transformer.core.errors import UserError

__all__ = ["project"]

TEXTS = [f"it is the film number {number} of many" for number in range(60)]


def table(texts: list[str], separator: str = ",") -> bytes:
    """Labelled texts, written as they are."""
    rows = (f"{'np'[number % 2]}{separator}{text}" for number, text in enumerate(texts))
    return "\n".join([f"label{separator}text", *rows, ""]).encode()


STRAY = [f'"{text}"' for text in TEXTS[:30]] + ['"never ends', *TEXTS[30:], 'it is 5"']
TABLES = {
    "no marks": (table(TEXTS), "csv"),
    "after a blank": (table([f' "{text}, as told"' for text in TEXTS]), "csv"),
    "badly escaped": (table([*(f'"{text}"' for text in TEXTS), '"a \\"b\\", c"', '"a" b']), "csv"),
    "a stray mark": (table(STRAY), "csv"),
    "text": (table([f'he said "{text}"' for text in TEXTS], "\t"), "none"),
    "some text": (table([*TEXTS, *(f'he said "{text}"' for text in TEXTS[:3])], "\t"), "none"),
    "line ends": (table([f'"{text}\nand, so on"' for text in TEXTS]), "multiline"),
    "line ends of dialogues": (table([f'"{text}\n- and so on"' for text in TEXTS], "\t"), "multiline"),
    "quotations over two rows": (table([*TEXTS, *['"who is it?', 'he asked"'] * 5], "\t"), "none"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_what_quotation_marks_mean_is_found_out(kind: str, tmp_path: Path) -> None:
    content, quotes = TABLES[kind]
    name = "train.tsv" if b"label\t" in content else "train.csv"
    assert quoting(write(tmp_path, {name: content})) == quotes


def test_pandas_files_are_quoted_whatever_is_in_them(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": ["n", "p"] * 30, "text": [f'a "quoted" text, {text}' for text in TEXTS]})
    for name, separator in (("train.csv", ","), ("test.tsv", "\t")):
        frame.to_csv(tmp_path / name, sep=separator, index=False)
    assert quoting(tmp_path) == "csv"


def test_the_profile_says_how_tables_are_quoted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    folder = write(project / "in", {"train.csv": TABLES["line ends"][0]})
    said = [*new_corpus(project, folder, name="lines", columns=None)]
    assert "quotation marks in tables: they enclose fields, also with line ends (`quotes: multiline`)" in said
    assert profile_values(project, "lines")["sentiment"]["download"]["quotes"] == "multiline"
    assert not [line for line in said if "left out" in line]


def test_quotation_marks_that_are_taken_off_are_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    rows = [f'"{TEXTS[0]}"', f'"{TEXTS[1]}"', *TEXTS]
    folder = write(project / "in", {"train.tsv": table(rows, "\t")})
    said = [*new_corpus(project, folder, name="marks", columns=None)]
    assert "quotation marks around texts (2 rows) are taken off; `quotes: none` keeps them" in said


def test_texts_of_two_languages_have_no_tables(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    lines = "".join(f'"{text}"\n' for text in TEXTS).encode()
    said = [
        *new_corpus(project, write(project / "in", {"train.fr": lines, "train.en": lines}), name="texts", columns=None)
    ]
    assert "rows: test 6, train 49, validation 5" in said
    assert not [line for line in said if "quotation" in line]


def test_labels_that_are_perhaps_one_are_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    labels = ["4.5", "4.50", "good", "Good", "bad"]
    body = "".join(f"{labels[number % 5]}\t{text}\n" for number, text in enumerate(TEXTS * 2))
    folder = write(project / "in", {"train.tsv": f"label\ttext\n{body}".encode()})
    said = [line for line in new_corpus(project, folder, name="labels", columns=None) if "different labels" in line]
    assert [line.split(" are")[0] for line in said] == ["4.5, 4.50", "Good, good"]


def test_rows_that_cannot_be_used_are_said_once_and_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    folder = write(project / "in", {"train.csv": TABLES["badly escaped"][0]})
    said = [*new_corpus(project, folder, name="escaped", columns=None)]
    (where,) = [number for number, line in enumerate(said) if line.startswith("train: 2 rows left out: a quotation m")]
    assert [line.split(":")[0] for line in said[where + 1 : where + 4]] == [
        "  in/train.csv, line 62", "  in/train.csv, line 63", "rehearsing"
    ]  # fmt: skip
    assert sum("line 62" in line for line in said) == 1
    assert profile_values(project, "escaped")["sentiment"]["download"]["bad_rows"] == "skip"


def test_rows_that_cannot_be_used_are_said_before_what_follows_from_the_others(project: Path) -> None:
    """All rows of one label have a comma too many."""
    body = [text if number % 2 else f"{text}, as told" for number, text in enumerate(TEXTS)]
    folder = write(project / "in", {"train.csv": table(body)})
    with pytest.raises(UserError, match=r"train has only the label p in the rows that can be read \(in/train\.csv, li"):
        [*new_corpus(project, folder, name="broken", columns=None)]
    lines = iter(new_corpus(project, folder, name="broken", columns=None))
    found = [next(lines) for _ in range(3)]
    assert found[2].startswith("train: 30 rows left out: 3 columns where the header has 2")


def test_a_folder_whose_name_is_not_utf8_is_one_line(project: Path) -> None:
    folder = Path(os.fsdecode(bytes(project) + b"/\xff"))
    folder.mkdir()
    with pytest.raises(UserError, match=r"the folder's name, '\S+udcff', is not UTF-8: rename it"):
        [*new_corpus(project, folder, name="x", columns=None)]


def test_a_folder_around_the_project_is_one_line(project: Path) -> None:
    write(project, {"train.csv": TABLES["no marks"][0]})
    with pytest.raises(UserError, match=r"\. contains this project: name a folder with nothing but the data"):
        [*new_corpus(project, Path(), name="all", columns=None)]
