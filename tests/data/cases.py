"""Parameters and small corpora shared by the tests of the download stages."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.builders import small_runtime
from transformer.core.files import read_rows

RUNTIME = small_runtime().model_dump()
REVISION = "37e118600232bb5298ca011a8a7e7a44e863c36a"
_SHARED: dict[str, Any] = {
    "source": "files",
    "path": "data/local",
    "repository": "owner/corpus",
    "revision": REVISION,
    "configuration": None,
    "sample_rows": {"train": 30, "validation": 10, "test": 10},
    "seed": 1,
    "expected_sha256": None,
    "columns": {},
    "quotes": "csv",
    "bad_rows": "stop",
    "max_words": None,
    "deduplicate": False,
    "validation_fraction": 0.2,
    "test_fraction": 0.2,
    "validation_block": 1,
    "near_duplicates": "keep",
}
_NOTHING_ADDED = {"added": "data/local/none"}


def translation(**changes: Any) -> dict[str, Any]:
    """The stage's parameters as plain values."""
    return {
        "runtime": RUNTIME,
        "download": {**_SHARED, **_NOTHING_ADDED, "languages": ["de", "en"], "max_ratio": None, **changes},
    }


def sentiment(**changes: Any) -> dict[str, Any]:
    """The stage's parameters as plain values."""
    return {
        "runtime": RUNTIME,
        "download": {**_SHARED, **_NOTHING_ADDED, "unsupervised": False, "labels": "train", **changes},
    }


def pairs(count: int, word: str = "Satz") -> list[dict[str, str]]:
    """Distinct sentence pairs."""
    return [{"de": f"{word} {number} über Ähren.", "en": f"Sentence {word} {number}."} for number in range(count)]


def reviews(count: int, word: str = "film") -> list[dict[str, Any]]:
    """Distinct labelled texts: all negative ones first, as in IMDB."""
    return [{"label": int(number >= count // 2), "text": f"A {word} {number}."} for number in range(count)]


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows in the layout `jsonl`."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files; those named .gz are compressed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


def stored(output: Path, split: str) -> list[dict[str, Any]]:
    """The rows that the stage wrote."""
    return list(read_rows(output / f"{split}.jsonl"))
