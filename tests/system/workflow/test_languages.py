"""Other scripts and orders, with the commands of docs/own-data.md: from files to an answer."""

from pathlib import Path

import pytest

from tests.conftest import make_clone
from tests.data.languages import pairs
from transformer.core.files import read_json


@pytest.mark.parametrize("language", ["ar", "ja"])
def test_a_language_goes_from_files_to_an_answer(language: str, tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
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
