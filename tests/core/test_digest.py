"""The digest of parameters: what changes it, and what does not."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.kit import TASKS
from transformer.core.params import declared_sections, parameters_digest, read_params
from transformer.core.task import open_task
from transformer.workflow.pipeline import stages_in_lock

SECTIONS: dict[str, Any] = {
    "translation.train": {"epochs": 8, "betas": [0.9, 1.0], "patience": None, "name": "ä"},
    "translation.download": {"path": "data/local", "expected_sha256": None, "seed": 1},
    "translation.vocab": {"path": "data/local", "kind": "word"},
    "hardware": {"threads": 2, "deterministic": False},
}


def changed(section: str, **values: Any) -> dict[str, Any]:
    return SECTIONS | {section: SECTIONS[section] | values}


def test_it_is_the_sha256_of_canonical_json() -> None:
    text = '{"hardware":{"deterministic":false,"threads":2}}'
    assert parameters_digest({"hardware": SECTIONS["hardware"]}) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(SECTIONS.items())),
        changed("translation.train", epochs=8.0, betas=(0.9, 1)),
        changed("translation.download", path="/elsewhere", added="/elsewhere", expected_sha256="0" * 64),
        changed("translation.vocab", path="/elsewhere"),
        SECTIONS | {"translation.download.path": "data/local", "translation.vocab.path": "data/local"},
        SECTIONS | {"runtime": {"workers": 3}},
    ],
    ids=["order", "whole floats", "the corpus's place and check", "the vocabulary's place", "DVC's leaves", "runtime"],
)
def test_what_changes_no_result_leaves_it(same: dict[str, Any]) -> None:
    assert parameters_digest(same) == parameters_digest(SECTIONS)


@pytest.mark.parametrize(
    "other",
    [
        changed("translation.train", epochs=9),
        changed("translation.train", betas=[1.0, 0.9]),
        changed("translation.train", patience=0),
        changed("translation.train", expected_sha256=None),
        changed("translation.vocab", kind="bpe"),
        changed("hardware", deterministic=True),
        changed("hardware", deterministic=0),
        {"sentiment.train": SECTIONS["translation.train"]},
        {},
    ],
)
def test_every_other_value_changes_it(other: dict[str, Any]) -> None:
    assert parameters_digest(other) != parameters_digest(SECTIONS)


@pytest.mark.parametrize("task", TASKS)
def test_a_lock_entry_has_the_digest_of_the_params_yaml_that_it_was_made_of(task: str) -> None:
    """With the project's own dvc.lock, which DVC wrote from its params.yaml."""
    locked = stages_in_lock((ROOT / "dvc.lock").read_bytes(), "main")
    content = read_params(ROOT / "params.yaml")
    for stage in ("download", "build_vocab", "train", "evaluate", "export"):
        sections = declared_sections(
            content, task, open_task(task).family.stage(stage).Params, where=Path("params.yaml")
        )
        assert parameters_digest(locked[f"{stage}@{task}"].params) == parameters_digest(sections), stage
