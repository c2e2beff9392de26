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


SAME = {
    "order": dict(reversed(SECTIONS.items())),
    "whole floats": changed("translation.train", epochs=8.0, betas=(0.9, 1)),
    "the corpus's place and check": changed("translation.download", path="/x", added="/x", expected_sha256="0" * 64),
    "the vocabulary's place": changed("translation.vocab", path="/elsewhere"),
    "DVC's leaves": SECTIONS | {"translation.download.path": "data/local", "translation.vocab.path": "data/local"},
    "runtime": SECTIONS | {"runtime": {"workers": 3}},
}
OTHER = {
    "a number": changed("translation.train", epochs=9),
    "an order": changed("translation.train", betas=[1.0, 0.9]),
    "nothing": changed("translation.train", patience=0),
    "a word": changed("translation.vocab", kind="bpe"),
    "a truth": changed("hardware", deterministic=True),
    "another task": {"sentiment.train": SECTIONS["translation.train"]},
}


@pytest.mark.parametrize("name", [*SAME, *OTHER])
def test_it_is_of_what_changes_a_result(name: str) -> None:
    assert (parameters_digest((SAME | OTHER)[name]) == parameters_digest(SECTIONS)) == (name in SAME)
    text = '{"hardware":{"deterministic":false,"threads":2}}'  # canonical JSON
    assert parameters_digest({"hardware": SECTIONS["hardware"]}) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("task", TASKS)
def test_a_lock_entry_has_the_digest_of_the_params_yaml_that_it_was_made_of(task: str) -> None:
    """With the project's own dvc.lock, which DVC wrote from its params.yaml."""
    locked = stages_in_lock((ROOT / "dvc.lock").read_bytes(), "main")
    content = read_params(ROOT / "params.yaml")
    for stage in ("download", "build_vocab", "train", "evaluate", "export"):
        schema = open_task(task).family.stage(stage).Params
        sections = declared_sections(content, task, schema, where=Path("params.yaml"))
        assert parameters_digest(locked[f"{stage}@{task}"].params) == parameters_digest(sections), stage
