"""`transformer new-corpus`: what a folder holds, and the profile that fits."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.conftest import ROOT
from tests.data.cases import write
from tests.kit import TASKS, profile_values
from transformer.commands import new_corpus as module
from transformer.commands import rehearsal
from transformer.commands.check import check_params
from transformer.commands.new_corpus import new_corpus, recognise
from transformer.commands.profiles import profile_params
from transformer.core.errors import UserError

FRENCH = [(f"Il y a {number} chiens dans la rue", f"There are {number} dogs in the street") for number in range(60)]
STARS: list[dict[str, Any]] = [
    {"review": f"It is the film number {number} of many.", "stars": number % 5 + 1} for number in range(60)
]


def table(rows: list[dict[str, Any]], separator: str) -> bytes:
    """A header and the rows."""
    lines = [rows[0].keys(), *(map(str, row.values()) for row in rows)]
    return "".join(f"{separator.join(line)}\n" for line in lines).encode()


def lines(rows: list[dict[str, Any]]) -> bytes:
    """JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def sides(names: tuple[str, str], rows: list[tuple[str, str]] = FRENCH) -> list[dict[str, str]]:
    """The pairs under these names."""
    return [dict(zip(names, row, strict=True)) for row in rows]


def text(side: int) -> bytes:
    """One side as plain text."""
    return "".join(f"{row[side]}\n" for row in FRENCH).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    """A Parquet file."""
    stream = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    content: bytes = stream.getvalue().to_pybytes()
    return content


MORE = [row | {"id": f"tt00{number}", "shop": "one shop"} for number, row in enumerate(STARS)]
RECOGNISED: dict[str, tuple[dict[str, bytes], dict[str, str]]] = {
    "two texts": ({"train.fr": text(0), "train.en": text(1)}, {"fr": "fr", "en": "en"}),
    "opus": ({"Books.en-fr.fr": text(0), "Books.en-fr.en": text(1), "README": b"x"}, {"fr": "fr", "en": "en"}),
    "codes": ({"train.jsonl": lines(sides(("fr", "en")))}, {"fr": "fr", "en": "en"}),
    "beside": ({"train.csv": table(sides(("fr", "en")), ","), "train.xlsx": b"PK"}, {"fr": "fr", "en": "en"}),
    "excel": ({"train.csv": table(sides(("FR", "EN")), ";")}, {"fr": "FR", "en": "EN"}),
    "regions": ({"train.tsv": table(sides(("fr-CA", "en_GB")), "\t")}, {"fr-ca": "fr-CA", "en_gb": "en_GB"}),
    "nested": (
        {"train.jsonl": lines([{"translation": row} for row in sides(("en", "fr"), [row[::-1] for row in FRENCH])])},
        {"fr": "translation.fr", "en": "translation.en"},
    ),
    "stars": ({"train.jsonl": lines(MORE)}, {"label": "stars", "text": "review"}),
    "stars in parquet": ({"train.parquet": parquet(MORE)}, {"label": "stars", "text": "review"}),
}


@pytest.mark.parametrize("given", RECOGNISED)
def test_columns_are_recognised_by_their_names(given: str, tmp_path: Path) -> None:
    files, columns = RECOGNISED[given]
    found = recognise(write(tmp_path / "in", files))
    assert [*found.items()] == [*columns.items()], "the source first"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "nothing to read in"),
        ({"reviews.tsv": b"a\tb\n"}, r"\(it has reviews.tsv\); it may contain"),
        (
            {"train.tsv": b"a\tb\n1\t2\n3\t4\n"},
            r"the names in \S+ \(a, b\) do not tell what to read: a table needs a head",
        ),
        ({"val.jsonl": b'{"text": "x"}\n'}, "has no split `train`"),
        ({"train.csv": "text,label\nschön,1\nübel,0\n".encode("cp1252")}, "train.csv, line 2: not UTF-8 .byte 0xf6"),
        ({"train.jsonl": b'[{"text": "x"}]\n'}, "no row of train can be read: .*train.jsonl, line 1: not a JSON"),
    ],
)
def test_a_folder_that_holds_no_corpus_is_one_line(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(UserError, match=message) as caught:
        recognise(write(tmp_path / "in", files))
    assert "\n" not in str(caught.value)


def test_given_columns_are_read_as_they_are_given(tmp_path: Path) -> None:
    assert recognise(tmp_path, ["en=source", "fr"]) == {"en": "source", "fr": "fr"}
    with pytest.raises(UserError, match="names one column twice"):
        recognise(tmp_path, ["text=a", "text=b"])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with our default and no profile; training is not rehearsed there."""
    root = tmp_path / "project"
    for folder in ("profiles", *(f"data/local/{name}" for name in (*TASKS, "none", "vocabulary"))):
        (root / folder).mkdir(parents=True)
    default = (ROOT / "profiles/default.yaml").read_text(encoding="utf-8")
    (root / "profiles/default.yaml").write_text(default.replace("threads: 2", "threads: 1"), encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setattr(module, "rehearse", lambda *_: rehearsal.Rehearsal(rows=10, seconds=0.1, cut=0.5))
    return root


Look = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def look(project: Path) -> Look:
    """A function that gives what is said of files, and the profile's section."""

    def found(quotes: Any = "csv", **files: bytes) -> tuple[str, dict[str, Any]]:
        folder = write(project / "in", {name.replace("_", "."): content for name, content in files.items()})
        said = "\n".join(new_corpus(project, folder, name="found", columns=None, quotes=quotes))
        (section,) = (profile_values(project, "found")[task] for task in TASKS if f"for the task {task}" in said)
        return said, section

    return found


def test_the_profile_fits_and_what_was_found_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rehearse", rehearsal.rehearse)
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LONGEST", 64)
    long = [(f"{a} " * 20, f"{b} " * 20) for a, b in FRENCH[20:]]
    noisy = [*sides(("fr", "en"), [*FRENCH[:20], *long]), {"fr": "", "en": "empty"}]
    folder = write(project / "data/local/french", {"train.jsonl": lines(noisy), "notes.txt": b"x"})
    said = "\n".join(new_corpus(project, folder, name=None, columns=None, quotes="csv"))
    for expected in (
        "sentence pairs, fr to en, for the task translation",
        "columns read: fr, en",
        "train: 1 rows left out: `fr` is empty",
        "train.jsonl, line 61: `fr` is empty",
        "ignored, since their names are of no layout: notes.txt",
        "test: the corpus has no such split, so 0.1 of train is held out",
        "rows: test ",
        "profiles/french.yaml written",
        " rows: an update takes ",
        "% of the rows are longer than 64 tokens: only their beginning will be read; `too_long",
        "answers will be in lowercase",
        "Next: make repro PROFILE=french TASK=translation",
    ):
        assert expected in said
    values = profile_values(project, "french")["translation"]
    assert values["download"]["path"] == "data/local/french"
    assert values["download"]["bad_rows"] == "skip"
    assert (values["tokenize"]["source"], values["tokenize"]["target"]) == ("fr", "en")
    (project / "params.yaml").write_text(profile_params(project, "french"), encoding="utf-8")
    check_params(project / "params.yaml")


def test_unbalanced_stars_get_their_labels_and_weights(look: Look) -> None:
    rows = [*STARS, *[row | {"stars": 5, "review": f"{row['review']} Again."} for row in STARS]]
    said, section = look(train_jsonl=lines(rows), test_jsonl=lines(STARS))
    assert "test: 1 12, 2 12, 3 12, 4 12, 5 12" in said and "F1" not in said
    assert "validation: the corpus has no such split" in said
    assert "50% of the rows are longer than 64 tokens: only their beginning will be read" in said
    assert section["download"]["labels"] == ["1", "2", "3", "4", "5"]
    assert section["download"]["columns"] == {"label": "stars", "text": "review"}
    assert section["download"]["bad_rows"] == "stop"
    assert section["train"]["class_weights"] == "balanced"


def test_every_character_of_a_script_has_room_in_the_vocabulary(look: Look) -> None:
    """Chinese has thousands, and no words between spaces."""
    letters = [chr(0x4E00 + number) for number in range(600)]
    rows = [{"text": "".join(letters[start : start + 30]), "label": start % 2} for start in range(570)] * 2
    said, section = look(train_jsonl=lines(rows), test_jsonl=lines(rows[:20]))
    assert "F1, ROC and precision are of the label 1; of 0 once `labels` has it second" in said
    assert "letter" not in said
    assert section["vocab"]["max_size"] >= 1000


def test_what_may_need_a_setting_is_said(look: Look) -> None:
    """A dotless i, labels that are perhaps one, and texts without a label."""
    rows = [{"label": ["good", "Good", "bad"][number % 3], "text": f"ışık {number} DIŞARI"} for number in range(120)]
    said, _ = look(train_jsonl=lines(rows), unsupervised_jsonl=lines([{"text": "quite another text"}]))
    assert "texts have the letter ı: set `language` under `tokenize` to tr or az" in said
    assert "Good, good are different labels; a mapping in `labels` gives them one name" in said
    assert "unsupervised is not used; `unsupervised: true` under `download` in the profile changes that" in said


def test_a_corpus_of_sentences_much_alike_says_so_and_keeps_them(look: Look) -> None:
    rows = [{"review": f"The film of day {day} was good fun for us all.", "stars": day % 2} for day in range(200)]
    said, section = look(train_jsonl=lines(rows))
    assert "much of train nearly equals held-out rows and stays" in said
    assert section["download"]["near_duplicates"] == "keep"


def test_rows_that_cannot_be_used_are_said(look: Look) -> None:
    """Labels that train lacks, too."""
    rows = [f"{'np'[number % 2]},film {number}" for number in range(60)]
    train = "\n".join(["label,text", *rows, 'p,"a \\"b\\", c"', 'n,"one', 'two"', ""])
    said, section = look(train_csv=train.encode(), test_csv=b'label,text\np,a "b"\nn,c\nc,d\n')
    for line, reason in ((62, "not CSV"), (63, "part of a quoted field"), (64, "part of a quoted field")):
        assert f"  in/train.csv, line {line}: {reason}" in said
    assert re.search(r"test.csv, line 4: the label must be n or p, not 'c'", said)
    assert section["download"]["bad_rows"] == "skip" and section["download"]["quotes"] == "csv"


def test_quotation_marks_are_text_where_that_is_declared(look: Look) -> None:
    rows = "".join(f'{"np"[number % 2]}\t"{number}\t\n' for number in range(60)).replace("\t\n", "\n")
    said, section = look(train_tsv=f"label\ttext\n{rows}".encode(), quotes="none")
    assert "left out" not in said
    assert section["download"]["quotes"] == "none"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["good", "bad"] * 100 + ["god"], "1 row with the label god: too few or too alike .* correct a misspelt label"),
        (["intent 0"] * 90, "train has only the label intent 0"),
        ([f"intent {number}" for number in range(150)], "train has more than 128 different labels"),
    ],
)
def test_labels_that_do_not_fit_are_one_line(labels: list[str], message: str, look: Look) -> None:
    rows = [{"text": f"thing {number * 7919 % 1000}", "intent": label} for number, label in enumerate(labels)]
    with pytest.raises(UserError, match=message):
        look(train_jsonl=lines(rows))


def test_a_profile_that_is_there_is_not_overwritten(project: Path) -> None:
    (project / "profiles" / "mine.yaml").write_text("hardware: {threads: 1}\n", encoding="utf-8")
    folder = write(project / "mine", RECOGNISED["codes"][0])
    with pytest.raises(UserError, match=r"profiles/mine\.yaml is there: remove it, or give another `--name`"):
        list(new_corpus(project, folder, name=None, columns=None, quotes="csv"))
    assert (project / "profiles" / "mine.yaml").read_text(encoding="utf-8") == "hardware: {threads: 1}\n"
