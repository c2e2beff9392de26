"""`transformer new-corpus`: what a folder holds, and the profile that fits."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.conftest import ROOT
from tests.data.cases import write
from tests.data.languages import pairs
from tests.kit import TASKS, profile_values
from transformer.commands import rehearsal
from transformer.commands.check import check_params
from transformer.commands.new_corpus import new_corpus, recognise
from transformer.commands.profiles import profile_params
from transformer.core.errors import UserError
from transformer.core.files import copy_file, read_rows, write_json, write_rows

FRENCH = pairs("fr")[:60]
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


PAIRS = {
    "two texts": ({"train.fr": text(0), "train.en": text(1)}, {"fr": "fr", "en": "en"}),
    "opus": ({"Books.en-fr.fr": text(0), "Books.en-fr.en": text(1), "README": b"x"}, {"fr": "fr", "en": "en"}),
    "codes": ({"train.jsonl": lines(sides(("fr", "en")))}, {"fr": "fr", "en": "en"}),
    "tsv": ({"train.tsv": table(sides(("fr", "en")), "\t")}, {"fr": "fr", "en": "en"}),
    "beside": ({"train.csv": table(sides(("fr", "en")), ","), "train.xlsx": b"PK"}, {"fr": "fr", "en": "en"}),
    "excel": ({"train.csv": table(sides(("FR", "EN")), ";")}, {"fr": "FR", "en": "EN"}),
    "nested": (
        {"train.jsonl": lines([{"translation": row} for row in sides(("en", "fr"), [row[::-1] for row in FRENCH])])},
        {"fr": "translation.fr", "en": "translation.en"},
    ),
}


@pytest.mark.parametrize("given", PAIRS)
def test_pairs_are_recognised(given: str, tmp_path: Path) -> None:
    files, columns = PAIRS[given]
    found = recognise(write(tmp_path / "in", files))
    assert found == columns
    assert [*found] == ["fr", "en"]  # into English, unless told otherwise


@pytest.mark.parametrize(
    ("files", "given", "columns"),
    [
        (
            {"train.csv": table(sides(("source", "target")), ",")},
            ["fr=source", "en=target"],
            {"fr": "source", "en": "target"},
        ),
        ({"train.src": text(0), "train.tgt": text(1)}, ["fr=src", "en=tgt"], {"fr": "src", "en": "tgt"}),
        (PAIRS["codes"][0], ["en", "fr"], {"en": "en", "fr": "fr"}),
        ({"train.csv": table(STARS, ",")}, ["label=stars", "text=review"], {"label": "stars", "text": "review"}),
    ],
)
def test_columns_that_are_given_are_read(
    files: dict[str, bytes], given: list[str], columns: dict[str, str], tmp_path: Path
) -> None:
    found = recognise(write(tmp_path / "in", files), given)
    assert [*found.items()] == [*columns.items()]


@pytest.mark.parametrize(
    "files",
    [
        {"train.csv": table(sides(("source", "target")), ",")},
        {"train.src": text(0), "train.tgt": text(1)},
        {"train.tsv": table(sides(("French", "English")), "\t")},
        {"train.tsv": table(sides(("en", "EN")), "\t")},
        {"train.jsonl": lines([{"fr": one, "en": other, "label": len(one) % 2} for one, other in FRENCH])},
        {"train.jsonl": lines([{"words": row["review"], "a": n % 2, "b": n % 3} for n, row in enumerate(STARS)])},
        {"train.jsonl": lines([row | {"text": f"Film {n}"} for n, row in enumerate(STARS)])},
        {"train.de": b"x\n"},
    ],
)
def test_what_is_unclear_is_asked_for(files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="say `--columns label=COLUMN text=COLUMN`, or for translations `--col"
    ) as caught:
        recognise(write(tmp_path / "in", files))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "tsv"])
def test_labelled_texts_are_recognised(kind: str, tmp_path: Path) -> None:
    more = [row | {"id": number, "shop": "one shop"} for number, row in enumerate(STARS)]
    folder = write(tmp_path / "in", {"train.jsonl": lines(more)} if kind == "jsonl" else {})
    folder.mkdir(exist_ok=True)
    if kind == "tsv":
        write(folder, {"train.tsv": table(more, "\t")})
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(more), folder / "train.parquet")
    assert recognise(folder) == {"label": "stars", "text": "review"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "nothing to read in"),
        (
            {"reviews.tsv": b"a\tb\n"},
            r"\(it has reviews.tsv, called after no split: call the training rows `train`\); it may",
        ),
        ({"train.tsv": b"a\tb\n1\t2\n3\t4\n"}, r"the names in \S+ \(a, b\) do not tell what to read"),
        ({"val.jsonl": b'{"text": "x"}\n'}, "has no split `train`"),
        ({"train.csv": "text,label\nschön,1\nübel,0\n".encode("cp1252")}, "train.csv, line 2: not UTF-8 .byte 0xf6"),
        ({"train.jsonl": b'[{"text": "x"}]\n'}, "no row of train can be used: .*train.jsonl, line 1: not a JSON"),
        ({"train.jsonl": b'{"label": 1, "text": 2}\n'}, "no row .* used: .*line 1: `text` must be text, not int"),
        ({"train.jsonl": b""}, "no row of train can be used: it is empty"),
    ],
)
def test_a_folder_that_holds_no_corpus_is_one_line(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(UserError, match=message) as caught:
        recognise(write(tmp_path / "in", files))
    assert "\n" not in str(caught.value)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with our default and no other profile."""
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.05)
    root = tmp_path / "project"
    for folder in ("profiles", *(f"data/local/{name}" for name in (*TASKS, "none", "vocabulary"))):
        (root / folder).mkdir(parents=True)
    copy_file(ROOT / "profiles/default.yaml", root / "profiles/default.yaml")
    monkeypatch.chdir(root)
    return root


def test_the_profile_fits_and_what_was_found_is_said(project: Path) -> None:
    noisy = [*sides(("fr", "en")), {"fr": "", "en": "empty"}, *sides(("fr", "en"), FRENCH[:3])]
    folder = write(project / "data/local/french", {"train.jsonl": lines(noisy), "notes.txt": b"x"})
    said = "\n".join(new_corpus(project, folder, name=None, columns=None))
    for expected in (
        "sentence pairs, fr to en, for the task translation",
        "columns read: fr, en",
        "train: 1 rows left out: `fr` is empty",
        "train.jsonl, line 61: `fr` is empty",
        "ignored, since their names are of no layout: notes.txt",
        "test: the corpus has no such split, so 0.1 of train is held out",
        "rows: test 6, train ",
        "profiles/french.yaml written",
        " rows: an update takes ",
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


def test_unbalanced_stars_get_their_labels_and_weights(project: Path) -> None:
    rows = [*STARS, *[row | {"stars": 5, "review": f"{row['review']} Again."} for row in STARS]]
    folder = write(project / "in", {"train.jsonl": lines(rows), "test.jsonl": lines(STARS)})
    said = "\n".join(new_corpus(project, folder, name="stars", columns=None))
    assert "test: 1 12, 2 12, 3 12, 4 12, 5 12" in said and "F1" not in said
    assert "validation: the corpus has no such split" in said
    section = profile_values(project, "stars")["sentiment"]
    assert section["download"]["labels"] == ["1", "2", "3", "4", "5"]
    assert section["download"]["columns"] == {"label": "stars", "text": "review"}
    assert section["download"]["bad_rows"] == "stop"
    assert section["train"]["class_weights"] == "balanced"


def test_every_character_of_a_script_has_room_in_the_vocabulary(project: Path) -> None:
    """Chinese has thousands, and no words between spaces."""
    letters = [chr(0x4E00 + number) for number in range(600)]
    rows = [{"text": "".join(letters[start : start + 30]), "label": start % 2} for start in range(570)] * 2
    folder = write(project / "in", {"train.jsonl": lines(rows), "test.jsonl": lines(rows[:20])})
    said = [*new_corpus(project, folder, name="han", columns=None)]
    assert "F1, ROC and precision are of the label 1; of 0 once `labels` has it second" in said
    assert not any("letter" in line for line in said)
    assert profile_values(project, "han")["sentiment"]["vocab"]["max_size"] >= 1000


def test_texts_with_a_dotless_i_need_their_language(project: Path) -> None:
    rows = [{"text": f"ışık {number} DIŞARI", "label": "ab"[number % 2]} for number in range(200)]
    said = new_corpus(project, write(project / "in", {"train.jsonl": lines(rows)}), name="tr", columns=None)
    assert any("texts have the letter ı: set `language` under `tokenize` to tr or az" in line for line in said)


def test_a_profile_that_is_there_is_not_overwritten(project: Path) -> None:
    (project / "profiles" / "mine.yaml").write_text("hardware: {threads: 1}\n", encoding="utf-8")
    folder = write(project / "mine", PAIRS["codes"][0])
    with pytest.raises(UserError, match=r"profiles/mine\.yaml is there: remove it, or give another `--name`"):
        list(new_corpus(project, folder, name=None, columns=None))
    assert (project / "profiles" / "mine.yaml").read_text(encoding="utf-8") == "hardware: {threads: 1}\n"
    with pytest.raises(UserError, match=r"`\.\./x` cannot name a profile"):
        list(new_corpus(project, folder, name="../x", columns=None))


def test_the_time_is_that_of_the_rows_that_train() -> None:
    """500 rows in batches of 32 are 16 updates."""
    said = rehearsal.Rehearsal(rows=100, seconds=2.0, cut=0.0).estimate(500, {"batch_size": 32, "epochs": 3})
    assert "3 epochs of 16 updates, the most there may be, take about 2 min" in said  # 96 s


def test_rows_sorted_by_label_are_rehearsed(project: Path) -> None:
    rows = [{"review": f"This is the film number {number}.", "stars": 1 + number // 3600} for number in range(7200)]
    files = {"train.jsonl": lines(rows), "val.jsonl": lines(rows[::90]), "test.jsonl": lines(rows[::70])}
    folder = write(project / "in", files)
    said = "\n".join(new_corpus(project, folder, name="sorted", columns=None))
    (rehearsed,) = re.findall(r"rehearsed on (\S+) rows", said)
    assert 2_900 < int(rehearsed.replace(",", "")) < 3_100  # of 7,200


def test_the_rehearsal_draws_rows_from_all_over_a_split(tmp_path: Path) -> None:
    """A rare label may be missing in them: rows are held out before, of all."""
    rows = {"train": 12_000, "test": 100}
    for split, count in rows.items():
        write_rows(tmp_path / f"corpus/{split}.jsonl", ({"text": "x", "label": n * 3 // count} for n in range(count)))
    write_json(tmp_path / "corpus/provenance.json", {"rows": rows})
    drawn = rehearsal._write_part(tmp_path / "corpus", tmp_path / "part")
    labels = [row["label"] for row in read_rows(tmp_path / "part/train.jsonl")]
    assert 2_900 < len(labels) == drawn < 3_100
    assert all(900 < labels.count(label) < 1_100 for label in range(3))
    assert len([*read_rows(tmp_path / "part/test.jsonl")]) == 100


def test_near_duplicates_are_counted_in_the_whole_corpus(project: Path) -> None:
    """In a sample of every third row hardly any would have another of its pattern."""
    letters = "bcdfgklmnp"
    rows = [
        {"text": " ".join(a + b + vowel for vowel in "aeiou" for b in letters[:4]) + f" {number}", "label": number % 2}
        for a in letters
        for number in range(1000)
    ]
    folder = write(project / "in", {"train.jsonl": lines(rows)})
    said = "\n".join(new_corpus(project, folder, name="dense", columns=None))
    assert "much of train nearly equals held-out rows and stays" in said
    assert profile_values(project, "dense")["sentiment"]["download"]["near_duplicates"] == "keep"


def test_a_corpus_of_sentences_much_alike_says_so_and_keeps_them(project: Path) -> None:
    rows = [{"review": f"The film of day {day} was good fun for us all.", "stars": day % 2} for day in range(200)]
    folder = write(project / "in", {"train.jsonl": lines(rows)})
    said = "\n".join(new_corpus(project, folder, name="alike", columns=None))
    assert "much of train nearly equals held-out rows and stays" in said
    assert profile_values(project, "alike")["sentiment"]["download"]["near_duplicates"] == "keep"


def test_a_misspelt_label_is_one_line(project: Path) -> None:
    rows = [
        {
            "review": f"The film of day {day * 7919 % 1000}.",
            "rating": "god" if day == 9 else "good" if day % 2 else "bad",
        }
        for day in range(400)
    ]
    folder = write(project / "in", {"train.jsonl": lines(rows)})
    with pytest.raises(UserError, match=r"1 row with the label god: too few or too alike .* correct a misspelt label"):
        [*new_corpus(project, folder, name="verdicts", columns=None)]


@pytest.mark.parametrize(
    ("labels", "message"), [(1, "only the label intent 0"), (150, "more than 128 different labels")]
)
def test_too_few_or_too_many_labels_are_one_line(labels: int, message: str, project: Path) -> None:
    rows = [{"text": f"how do I do the thing {n}", "intent": f"intent {n % labels}"} for n in range(900)]
    folder = write(project / "in", {"train.jsonl": lines(rows)})
    with pytest.raises(UserError, match=f"train has {message}"):
        [*new_corpus(project, folder, name="intents", columns=None)]


def test_names_of_labels_in_parquet_files_are_the_labels(project: Path) -> None:
    """Also where number 0 is called 1, as of stars."""
    import datasets

    stars = [str(number) for number in range(1, 6)]
    features = datasets.Features({"label": datasets.ClassLabel(names=stars), "text": datasets.Value("string")})
    rows = [{"label": number % 5, "text": f"the film {number} of {number % 7} days"} for number in range(300)]
    rows.append({"label": 4, "text": ""})
    (project / "in").mkdir()
    datasets.Dataset.from_list(rows, features=features).to_parquet(project / "in" / "train.parquet")
    said = "\n".join(new_corpus(project, project / "in", name="stars", columns=None))
    assert "test: 1 6, 2 6, 3 6, 4 6, 5 6" in said and "train: 1 rows left out: `text` is empty" in said
    assert profile_values(project, "stars")["sentiment"]["download"]["labels"] == stars


def test_rows_with_labels_that_train_lacks_are_told(project: Path) -> None:
    rows = [{"text": f"the film {number}", "label": "ab"[number % 2]} for number in range(60)]
    files = {"train.jsonl": lines(rows), "test.jsonl": lines([*rows[:20], {"text": "the film", "label": "c"}])}
    said = "\n".join(new_corpus(project, write(project / "in", files), name="strange", columns=None))
    assert "test: 1 rows left out" in said
    assert re.search(r"test.jsonl, line 21: the label must be a or b, not 'c'", said)
    assert profile_values(project, "strange")["sentiment"]["download"]["bad_rows"] == "skip"


def test_long_sentences_have_long_answers(project: Path) -> None:
    rows = [(f"{a} " * 40, f"{b} " * 40) for a, b in FRENCH[:12]]
    folder = write(project / "in", {"train.jsonl": lines(sides(("fr", "en"), rows))})
    [*new_corpus(project, folder, name="long", columns=None)]
    section = profile_values(project, "long")["translation"]
    assert section["evaluate"]["max_length"] == section["model"]["max_length"] > 200


def test_texts_without_a_label_are_not_used_unasked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    unlabelled = [{"review": f"Quite another text number {n}."} for n in range(7)]
    files = {"train.csv": table(STARS, ","), "unsupervised.csv": table(unlabelled, ",")}
    said = [*new_corpus(project, write(project / "in", files), name="more", columns=None)]
    assert "unsupervised is not used; `unsupervised: true` under `download` in the profile changes that" in said


def test_texts_that_will_be_cut_are_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thirds of them."""
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.1)
    words = [f"w{number}" for number in range(500)]
    rows = [{"text": " ".join(Random(n).choices(words, k=1200 if n % 3 else 30)), "label": n % 2} for n in range(60)]
    said = [*new_corpus(project, write(project / "in", {"train.jsonl": lines(rows)}), name="long", columns=None)]
    (line,) = [line for line in said if "only their beginning" in line]
    assert re.fullmatch(r"6\d% of the rows are longer than 1,024 tokens: only their beginning will be read", line)


@pytest.mark.parametrize("names", [("fr", "en"), ("FR", "EN"), ("fr-CA", "en_GB"), ("zh-Hans", "en")])
def test_columns_called_after_two_languages_are_sides_beside_a_third(names: tuple[str, str], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [row | {"score": n % 5} for n, row in enumerate(sides(names))]
    for given in (rows, sides(names)):
        found = recognise(write(tmp_path / str(len(given[0])), {"train.jsonl": lines(given)}))
        assert [*found.values()] == [*names]
    numbered = [{"id": f"tt00{n}", "review": row["review"], "stars": row["stars"]} for n, row in enumerate(STARS)]
    assert recognise(write(tmp_path / "numbered", {"train.jsonl": lines(numbered)})) == {
        "label": "stars",
        "text": "review",
    }


HEADLESS = {
    "numbers": [
        {"1": "1", "Schön": "Schön"},
        *({"1": str(n % 2), "Schön": f"ein Film {n} von vielen"} for n in range(60)),
    ],
    "names": [{"label": str(n % 2), "text": f"It was film number {n}"} for n in range(60)],
    "sentences": [{"fr": f"Il y a {n} chiens noirs", "en": f"There are {n} black dogs"} for n in range(60)],
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_a_table_without_a_header_is_refused(kind: str, tmp_path: Path) -> None:
    """Else its first row would be lost, and its values taken for names."""
    _, *rows = table(HEADLESS[kind], "\t").splitlines(keepends=True)
    with pytest.raises(UserError, match="a table needs a header row"):
        recognise(write(tmp_path / "in", {"train.tsv": b"".join(rows)}))
