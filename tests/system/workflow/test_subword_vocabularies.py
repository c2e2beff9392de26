"""The stages with BPE and Unigram vocabularies on raw text, from the corpus to an exported model."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import STAGES
from transformer.core.files import sha256

CHANGES: dict[str, dict[str, Any]] = {
    "bpe": {"kind": "bpe", "joint": True, "max_size": 500, "byte_fallback": True, "bpe_dropout": 0.1},
    "unigram": {"kind": "unigram", "max_size": 400},
}

CONSOLE = "from transformer.cli import main; main()"  # the clone's own code: the command may belong to another checkout


def run(clone: Clone, *stages: str) -> None:
    for stage in stages:
        clone.run("python", "-m", f"stages.{stage}", "translation")


def hashes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_from_the_corpus_to_an_exported_model(kind: str, tmp_path: Path) -> None:
    clone = make_clone(tmp_path)
    clone.change({"runtime.tracking": False, "translation.tokenize.kind": "none"})
    clone.change({f"translation.vocab.{name}": value for name, value in CHANGES[kind].items()})
    # Export compares every prediction of the bundle with evaluate's. The report needs a dvc.lock, but DVC does not run
    # here.
    run(clone, *(stage for stage in STAGES if stage != "report"))
    answers = clone.run("python", "-c", CONSOLE, "translate", "Ein Hund  \u2581 你好.", "").stdout.splitlines()
    assert len(answers) == 2
    assert answers[1] == ""
    if kind == "bpe":
        dropout_changes_training_alone(clone)


def dropout_changes_training_alone(clone: Clone) -> None:
    encoded, trained = clone.root / "data/translation/encoded", clone.root / "models/translation/trained"
    before = hashes(encoded), hashes(trained)
    run(clone, "build_vocab", "train")
    assert (hashes(encoded), hashes(trained)) == before
    clone.change({"translation.vocab.bpe_dropout": 0.0})
    run(clone, "build_vocab", "train")
    assert hashes(encoded) == before[0]
    assert hashes(trained) != before[1]
