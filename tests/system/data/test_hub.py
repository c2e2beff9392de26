"""The source `hub`, from a server on this machine; tests/data/test_hub.py has the cases."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.data.cases import REVISION, json_lines, pairs, params, provenance, stored
from tests.system.data.hub_server import Hub, download, serve

PAIRS = {"train": pairs(60), "validation": pairs(10, "Wert"), "test": pairs(8, "Probe")}


def multi30k() -> dict[str, bytes]:
    """The files of the data set on the Hub."""
    names = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}
    return {"README.md": b"---\n---\n", **{names[split]: json_lines(rows) for split, rows in PAIRS.items()}}


def two_configurations() -> dict[str, bytes]:
    """The files of a data set of two pairs of languages, the columns in a mapping, as OPUS-100 has them."""
    card, files = "", {}
    for name in ("de-en", "fr-en"):
        card += f"- config_name: {name}\n  data_files:\n"
        for split, rows in PAIRS.items():
            card += f"  - split: {split}\n    path: {name}/{split}.jsonl\n"
            texts = [{"translation": {"en": row["en"], name[:2]: f"{name} {row['de']}"}} for row in rows]
            files[f"{name}/{split}.jsonl"] = json_lines(texts)
    return {"README.md": f"---\nconfigs:\n{card}---\n".encode(), **files}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve(Hub("owner/corpus", REVISION, multi30k())) as running:
        yield running


def run(hub: Hub, tmp_path: Path, **changes: Any) -> CompletedProcess[str]:
    given, output = params("translation", source="hub", **changes), tmp_path / "out" / "corpus"
    return download("translation", given, output=output, endpoint=hub.endpoint, home=tmp_path / "home")


def refused(result: CompletedProcess[str], tmp_path: Path) -> str:
    """The one-line message of a UserError, which leaves no files behind."""
    assert result.returncode == 1, result.stderr
    assert re.fullmatch(r"UserError: [^\n]+\n", result.stderr), result.stderr
    assert not result.stdout
    assert not [*(tmp_path / "out").iterdir()]
    return result.stderr


def test_rows_come_from_the_data_set_alone_and_nothing_else_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    result = run(hub, tmp_path)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert json.loads(result.stdout) == {"train_rows": 60, "validation_rows": 10, "test_rows": 8}
    assert {split: stored(tmp_path / "out" / "corpus", split) for split in PAIRS} == PAIRS
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["corpus"]
    assert all("/owner/corpus" in request for request in hub.requests), hub.requests
    hub.revision, hub.files = "1" * 40, {}  # then what the cache has of another commit is no answer
    result = run(hub, tmp_path, revision=hub.revision)
    assert "cannot load owner/corpus at 1111" in result.stderr
    assert provenance(tmp_path / "out" / "corpus")["revision"] == REVISION


def test_one_of_several_configurations(hub: Hub, tmp_path: Path) -> None:
    hub.files = two_configurations()
    for configuration in (None, "it-en"):
        message = refused(run(hub, tmp_path, configuration=configuration), tmp_path)
        assert all(name in message for name in ("de-en", "fr-en", "set `configuration`"))
    assert run(hub, tmp_path, configuration="de-en").returncode == 0
    expected = [{**row, "de": f"de-en {row['de']}"} for row in PAIRS["test"]]
    assert stored(tmp_path / "out" / "corpus", "test") == expected


def test_an_unreachable_hub_names_the_ways_out_soon(tmp_path: Path) -> None:
    with serve(Hub("owner/corpus", REVISION, multi30k())) as stopped:
        pass
    start = time.monotonic()
    message = refused(run(stopped, tmp_path), tmp_path)
    assert time.monotonic() - start < 20
    assert all(way in message for way in ("`source: files`", "DATA=path", "`source: sample`", "HF_ENDPOINT"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"repository": "nobody/nothing"}, "nobody/nothing"),
        ({"revision": "0" * 40}, f"owner/corpus at {'0' * 40} from the Hub (RevisionNotFound"),
    ],
)
def test_what_the_hub_does_not_have(changes: dict[str, str], named: str, hub: Hub, tmp_path: Path) -> None:
    assert named in refused(run(hub, tmp_path, **changes), tmp_path)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("bytes", "owner/corpus, train, row 1: not UTF"),
        ("end", "cannot load owner"),
        ("transfer", "cannot load owner"),
    ],
)
def test_broken_files_and_transfers(fault: str, message: str, hub: Hub, tmp_path: Path) -> None:
    content = hub.files["train.jsonl"]
    hub.files["train.jsonl"] = content[:-20] if fault == "end" else content
    if fault == "bytes":
        hub.files["train.jsonl"] = content.replace("Ä".encode(), b"\xff", 1)
    hub.truncated = {"train.jsonl"} if fault == "transfer" else set()
    assert message in refused(run(hub, tmp_path), tmp_path)
