"""Small corpora, and the download stages that read them."""

import gzip
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.builders import small_runtime
from tests.kit import fresh_profile
from transformer.core.files import read_json, read_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import open_task

REVISION = "37e118600232bb5298ca011a8a7e7a44e863c36a"


def params(task: str, **changes: Any) -> dict[str, Any]:
    """The stage's parameters as plain values: the default, of files, with these changes."""
    ours: dict[str, Any] = {
        "source": "files",
        "repository": "owner/corpus",
        "revision": REVISION,
        "near_duplicates": "keep",
    }
    ours |= {"sample_rows": {"train": 30, "validation": 10, "test": 10}}
    ours |= {"validation_fraction": 0.2, "test_fraction": 0.2}
    return {
        "runtime": small_runtime().model_dump(),
        "download": fresh_profile("default")[task]["download"] | ours | changes,
    }


def download(task: str, folder: Path, observer: Observer | None = None, **changes: Any) -> Path:
    """Run a task's stage; gives its output, in the folder `out`."""
    paths, stage = Paths(data=folder / "out", models=folder, reports=folder), open_task(task).family.stage("download")
    stage.run(open_task(task), stage.Params.model_validate(params(task, **changes)), paths, observer or Observer())
    return paths.corpus


translate = partial(download, "translation")
judge = partial(download, "sentiment")


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
        path.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    return folder


def splits(folder: Path, **rows: Iterable[Mapping[str, Any]]) -> str:
    """A folder with these splits as JSON lines; returns its path."""
    return str(write(folder, {f"{split}.jsonl": json_lines(given) for split, given in rows.items()}))


def parallel(folder: Path, **changed: list[dict[str, Any]]) -> str:
    """A folder with the three splits of a translation corpus; returns its path."""
    return splits(folder, **{"train": pairs(9), "val": pairs(3), "test": pairs(4), **changed})


def labelled(folder: Path, **changed: list[dict[str, Any]]) -> str:
    """A folder with a sentiment corpus without a validation split; returns its path."""
    return splits(folder, **{"train": reviews(100), "test": reviews(6, "test film"), **changed})


def stored(output: Path, split: str) -> list[dict[str, Any]]:
    """The rows that the stage wrote."""
    return list(read_rows(output / f"{split}.jsonl"))


def provenance(output: Path) -> dict[str, Any]:
    """What the stage says of its rows."""
    content: dict[str, Any] = read_json(output / "provenance.json")
    return content


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
