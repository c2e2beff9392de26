"""The sample corpora as params.yaml reads them: evaluation splits never change, and training has none of their rows."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kit import TASKS
from transformer.core.files import read_json, read_rows, read_table, sha256
from transformer.core.observer import Observer
from transformer.core.params import read_params, stage_params
from transformer.core.paths import Paths
from transformer.core.task import open_task

EVALUATED = {
    "translation": {
        "validation": "e3d841188f72dc61b4af00079cdbb70c10a7571b5803b8d39322119cda7d74d2",
        "test": "916500519f393fe637a7cdfe60f3f7830710c0de0b1a9941e907343ef21aa554",
    },
    "language": {
        "validation": "6fbeb2560cdca2ec96dc2751224f87312fcf43a4c24592a4c54bc7d87447abae",
        "test": "ce5bba80406d929c8daa33a4fbaebecdce71b5d57518f54550dcb9c0ef1a43c0",
    },
    "sentiment": {
        "validation": "fe3a27586a4f6dfb4f844d44ae8ed1a047d580e50734583f477666ed05ba7aa9",
        "test": "4890fe648dd55df59bb27769ae6bf72fa840ea33b743ad3069b21a040f522162",
    },
}
"""SHA-256 of the files, as in provenance.json: metrics of different versions compare only while these are the same."""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each task's corpus, as `download` writes it with params.yaml."""
    root = tmp_path_factory.mktemp("corpora")
    content = read_params(ROOT / "params.yaml")
    content["language"]["download"]["held_out"] = str(root / "sentiment")
    for task in reversed(TASKS):
        stage = open_task(task).family.stage("download")
        params = stage_params(content, task, stage.Params, where=ROOT / "params.yaml")
        stage.run(open_task(task), params, Paths(data=root / task, models=root, reports=root), Observer())
        (root / task / "corpus").rename(root / "corpus")
        (root / task).rmdir()
        (root / "corpus").rename(root / task)
    return root


def test_the_files_are_those_of_the_checksums() -> None:
    lines = (ROOT / "samples" / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {path.relative_to(ROOT / "samples").as_posix(): path for path in (ROOT / "samples").glob("*/*")}
    assert {name: sha256(path) for name, path in files.items()} == sums
    assert sum(path.stat().st_size for path in files.values()) < 3_000_000


@pytest.mark.parametrize("task", TASKS)
def test_the_evaluation_splits_never_change(task: str, corpora: Path) -> None:
    written = read_json(corpora / task / "provenance.json")["sha256"]
    assert {split: written[split] for split in EVALUATED[task]} == EVALUATED[task]


@pytest.mark.parametrize(("task", "column"), [("translation", "de"), ("sentiment", "text"), ("language", "text")])
def test_no_row_of_an_evaluation_split_is_in_train(task: str, column: str, corpora: Path) -> None:
    splits = ("train", "validation", "test")
    train, validation, test = (
        {row[column] for row in read_rows(corpora / task / f"{split}.jsonl")} for split in splits
    )
    assert len(validation) >= 490 and len(test) >= 490
    assert not train & test
    assert not train & validation
    assert not test & validation


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_labels_are_balanced_however_many_rows_are_taken(split: str, corpora: Path) -> None:
    labels = [row["label"] for row in read_rows(corpora / "sentiment" / f"{split}.jsonl")]
    assert all(one + other == 1 for one, other in zip(labels[::2], labels[1::2], strict=True))


@pytest.mark.parametrize("task", ["translation", "sentiment"])
def test_the_fresh_sentences_have_the_words_of_training_and_are_not_in_it(task: str, corpora: Path) -> None:
    train = list(read_rows(corpora / task / "train.jsonl"))
    for column in sorted({"de", "en", "text"} & set(train[0])):
        texts = {row[column] for row in train}
        known = {word for text in texts for word in re.findall(r"\w+", text.lower())}
        fresh = [row[column] for row in read_table(ROOT / "tests" / "project" / "fresh" / f"{task}.tsv")]
        assert len(fresh) == 20
        assert not texts & set(fresh)
        assert {word for text in fresh for word in re.findall(r"\w+", text.lower())} <= known
