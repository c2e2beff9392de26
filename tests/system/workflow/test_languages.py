"""Other scripts, orders and label sets, with the commands of docs/own-data.md: from files to an answer."""

import json
from pathlib import Path

import pytest

from tests.conftest import Clone, make_clone
from tests.data.languages import pairs
from transformer.core.files import read_json

STARS = {
    1: "awful broken waste",
    2: "poor weak slow",
    3: "plain average fair",
    4: "good solid nice",
    5: "perfect lovely",
}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A fresh clone."""
    return make_clone(tmp_path / "clone")


@pytest.mark.parametrize("language", ["ar", "ja"])
def test_a_language_goes_from_files_to_an_answer(language: str, clone: Clone) -> None:
    folder = clone.root / "data" / "local" / f"{language}-en"
    folder.mkdir()
    own, english = zip(*pairs(language), strict=True)
    (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
    (folder / "train.en").write_text("".join(f"{line}\n" for line in english), encoding="utf-8")
    said = clone.run("transformer", "new-corpus", str(folder)).stdout
    assert f"sentence pairs, {language} to en" in said
    clone.run("transformer", "profile", f"{language}-en")
    clone.repro("report@translation")
    scores = read_json(clone.root / "reports" / "translation" / "evaluation.json")["test"]
    assert scores["chrf"] > 90  # every phrase of the held-out sentences is in training
    answer = clone.run("transformer", "translate", own[0]).stdout
    assert answer.strip().removesuffix(".").strip() == english[0].removesuffix(".")


def test_five_star_ratings_go_from_files_to_an_answer(clone: Clone) -> None:
    folder = clone.root / "data" / "local" / "stars"
    folder.mkdir()
    rows = [
        {"review": f"{word} {thing}, it came on day {day}", "stars": stars}
        for day in range(20)
        for thing in ("phone", "book", "chair", "lamp")
        for stars, found in STARS.items()
        for word in found.split()
    ]
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    clone.run("transformer", "new-corpus", str(folder))
    clone.run("transformer", "profile", "stars")
    clone.repro("report@sentiment")
    assert read_json(clone.root / "reports" / "sentiment" / "evaluation.json")["test"]["macro_f1"] > 0.9
    assert clone.run("transformer", "classify", "perfect lamp, it came on day 3").stdout.startswith("5\t")
