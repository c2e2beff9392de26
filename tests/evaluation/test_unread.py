"""What evaluate says about texts that were not read as they stand, and about answers that stop short."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.inference.conftest import ROWS
from tests.training.small import paths_in, prepare, run_stage, smoke, train
from transformer.core.files import read_json, read_rows
from transformer.core.observer import Observer
from transformer.data.vocabulary import read_vocabularies


def evaluated(task: str, root: Path, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The metrics of validation."""
    content = smoke(task, {**ROWS, **changes})
    paths = paths_in(root, task)
    prepare(content, task, paths.data)
    train(content, task, paths.data, root, observer=Observer())
    run_stage(content, task, "evaluate", paths, Observer())
    found: dict[str, float] = read_json(paths.evaluation)["validation"]
    return found


def encoded(root: Path, task: str, side: str) -> tuple[list[int], float]:
    """The number of tokens of each text of validation, and the share of unknown ones."""
    paths = paths_in(root, task)
    vocabulary = read_vocabularies(paths.vocab, side)[side]
    texts = [row[side] for row in read_rows(paths.tokens / "validation.jsonl")]
    rows = [ids[1:-1].tolist() for ids in vocabulary.encode(texts)]
    ids = [each for row in rows for each in row]
    return [len(row) for row in rows], round(ids.count(vocabulary.unknown_id) / len(ids), 6)


@pytest.mark.parametrize("policy", ["cut", "split"])
def test_translations_have_rates(policy: str, tmp_path: Path) -> None:
    changes: dict[str, dict[str, Any]] = {
        "model": {"max_length": 14},
        "evaluate": {"long_sources": policy, "max_length": 1, "method": "greedy"},
    }
    found = evaluated("translation", tmp_path, changes)
    lengths, unknown = encoded(tmp_path, "translation", "source")
    long = round(sum(length > 12 for length in lengths) / len(lengths), 6)
    assert 0 < long < 1
    assert found["truncated_rate" if policy == "cut" else "split_rate"] == long
    assert ("truncated_rate" in found) != ("split_rate" in found)
    assert found["source_unknown_rate"] == unknown > 0
    assert 0 < found["unfinished_rate"] <= 1


def test_classifications_have_a_rate_of_unknown_tokens(tmp_path: Path) -> None:
    words: dict[str, dict[str, Any]] = {"tokenize": {"kind": "spacy"}, "vocab": {"kind": "word", "min_frequency": 3}}
    found = evaluated("sentiment", tmp_path, words)
    assert found["unknown_rate"] == encoded(tmp_path, "sentiment", "text")[1] > 0
    assert not {"truncated_rate", "split_rate"} & {*found}
