"""The digest of parameters: what changes it, and what does not."""

import hashlib
from typing import Any

import pytest

from transformer.core.params import parameters_digest

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
