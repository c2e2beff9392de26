"""The sample corpora: evaluation splits never change, and training has none of their rows."""

from functools import cache
from pathlib import Path

import pytest

from tests.data.cases import download, provenance
from tests.data.sentences import sample_rows
from tests.kit import ROOT, TASKS, fresh_profile
from transformer.core.files import sha256

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


def test_the_files_are_those_of_the_checksums() -> None:
    lines = (ROOT / "samples" / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {path.relative_to(ROOT / "samples").as_posix(): path for path in (ROOT / "samples").glob("*/*")}
    assert {name: sha256(path) for name, path in files.items()} == sums
    assert sum(path.stat().st_size for path in files.values()) < 3_000_000


@pytest.mark.parametrize("task", TASKS)
def test_the_evaluation_splits_never_change(task: str, tmp_path: Path) -> None:
    default = fresh_profile("default")[task]["download"] | {"sample_rows": _counts(task) | {"train": 100}}
    nothing = {"held_out": "data/local/none"} if task == "language" else {}
    written = provenance(download(task, tmp_path, **default | nothing))["sha256"]
    assert {split: written[split] for split in EVALUATED[task]} == EVALUATED[task]


def _counts(task: str) -> dict[str, int]:
    counts: dict[str, int] = fresh_profile("default")[task]["download"]["sample_rows"]
    return counts


@cache
def texts(task: str, split: str, column: str) -> set[str]:
    """Those of the default."""
    return {row[column] for row in sample_rows(task, _counts(task)[split], split)}


@pytest.mark.parametrize(("task", "column"), [("translation", "de"), ("sentiment", "text"), ("language", "text")])
def test_no_row_of_an_evaluation_split_is_in_train(task: str, column: str) -> None:
    train, validation, test = (texts(task, split, column) for split in ("train", "validation", "test"))
    assert len(validation) >= 490 and len(test) >= 490
    assert not train & test and not train & validation and not test & validation
