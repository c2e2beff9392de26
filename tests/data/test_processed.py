"""Sentence pairs that were tokenized or escaped before they came here."""

from pathlib import Path

import pytest

from tests.data import cases
from tests.data.cases import json_lines, pairs, write
from tests.data.test_tables import Said, download


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("it &apos;s", "&apos;"),
        ("a five @-@ fold", "@-@"),
        ("un@@ told", "@@"),
        ("a &amp; b", None),
        ("me@@home @", None),
    ],
)
def test_it_is_said_once(text: str, mark: str | None, tmp_path: Path) -> None:
    """One row alone proves nothing."""
    rows = pairs(200)
    for row in rows if mark else rows[:2]:
        row["en"] += f" {text}"
    said = Said()
    path = write(tmp_path / "in", {"train.jsonl": json_lines(rows)})
    download("translation", tmp_path, cases.translation(path=str(path)), said)
    found = [line for line in said.lines if "tokenized" in line]
    assert len(found) == bool(mark)
    assert not mark or f"rows were tokenized or escaped before ({mark}): answers will look like that" in found[0]
