"""The texts of a language model: from where, and none that another task is judged by."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stages import Stages
from transformer.core.errors import UserError
from transformer.data.select import JUDGED

TRAIN = [f"review number {n} says that film {n} has a plot with {n} turns and {n + 7} twists" for n in range(40)]
PAIR = ("Ein Mann schläft auf einer Bank im Park.", "A man is sleeping on a bench in the park.")
JUDGED_TEXT = "of all the films about a butcher in Paris this one is by far the silliest and the longest too"


def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Stages:
    """A folder with a corpus of texts, and that of another task; its test split has sentences of two languages."""
    other = tmp_path / "data" / "sentiment" / "corpus"
    other.mkdir(parents=True)
    for split, row in {"validation": {"label": 1, "text": JUDGED_TEXT}, "test": {"de": PAIR[0], "en": PAIR[1]}}.items():
        (other / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    leaves = {"download.source": "files", "download.path": str(tmp_path / "texts")}
    return Stages(tmp_path, "language", monkeypatch, leaves | changes)


def write(folder: Path, files: dict[str, list[str]], column: str = "text") -> None:
    """JSON lines, a file for each split."""
    folder.mkdir(exist_ok=True)
    for split, texts in files.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps({column: text}) + "\n" for text in texts))


def written(tmp_path: Path, split: str) -> list[str]:
    lines = (tmp_path / "data" / "language" / "corpus" / f"{split}.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def test_planted_duplicates_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near = JUDGED_TEXT.replace("silliest", "dullest").replace(" too", "")
    write(tmp_path / "texts", {"val": ["one"], "test": ["two"]})
    texts = "".join(f"{text}\n" for text in [*TRAIN[:20], JUDGED_TEXT, *TRAIN[20:], near, *PAIR])
    (tmp_path / "texts/train.text").write_text(texts)
    found = stages(tmp_path, monkeypatch)
    found.run("download")
    assert written(tmp_path, "train") == TRAIN
    provenance = json.loads((tmp_path / "data" / "language" / "corpus" / "provenance.json").read_text())
    assert provenance["left_out"] == {"train": {JUDGED: 4}}
    assert f"train: 4 rows left out: {JUDGED}" in found.observer.lines


OWN = "A text of its own validation split, which training must not have read."


def test_unlabelled_texts_join_those_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = [*TRAIN[20:], JUDGED_TEXT, OWN]
    files = {"train": TRAIN[:20], "unsupervised": more, "val": ["one", OWN], "test": ["two"]}
    write(tmp_path / "texts", files, "review")
    found = stages(tmp_path, monkeypatch, **{"download.columns": {"text": "review"}})
    for wanted, expected in ((False, TRAIN[:20]), (True, TRAIN)):
        found.content["language"]["download"]["unsupervised"] = wanted
        found.run("download")
        assert written(tmp_path, "train") == expected


@pytest.mark.parametrize("split", ["val", "test"])
def test_unlabelled_texts_are_not_those_of_the_one_split_that_a_corpus_has(
    split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As IMDB, which has no validation split: some of the joined texts are held out for the other."""
    write(tmp_path / "texts", {"train": TRAIN, "unsupervised": [OWN] * 30, split: ["one", OWN]})
    found = stages(tmp_path, monkeypatch, **{"download.unsupervised": True, "download.held_out": "data/local/none"})
    found.run("download")
    assert OWN not in written(tmp_path, "train") and len(written(tmp_path, "train")) > 30
    assert any("equals or nearly equals a text of its own" in line for line in found.observer.lines)


def test_a_missing_corpus_of_judged_texts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "texts", {"train": TRAIN, "val": ["one"], "test": ["two"]})
    found = stages(tmp_path, monkeypatch)
    found.content["language"]["download"]["held_out"] = "data/nothing"
    with pytest.raises(UserError, match="data/nothing has no validation or test split: run the download of its task"):
        found.run("download")
