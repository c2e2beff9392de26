"""The source `hub`, from a server on this machine; tests/data/test_hub.py has the cases."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.data.cases import REVISION, json_lines, pairs, provenance, stored
from tests.kit import ROOT

PAIRS = {"train": pairs(60), "validation": pairs(10, "Wert"), "test": pairs(8, "Probe")}


class Hub(ThreadingHTTPServer):
    """The endpoints of the Hugging Face Hub that `datasets` uses, with one data set, owner/corpus, at one commit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.revision, self.requests = REVISION, list[str]()
        self.files = {"README.md": b"---\n---\n"} | {f"{split}.jsonl": json_lines(PAIRS[split]) for split in PAIRS}

    def entries(self, names: set[str]) -> list[dict[str, Any]]:
        """The entries of these files in the Hub's listings."""
        return [
            {"type": "file", "oid": sha1(self.files[name]).hexdigest(), "size": len(self.files[name]), "path": name}
            for name in sorted(self.files.keys() & names)
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        hub.requests.append(path)
        found = re.fullmatch(r"(?:/api)?/datasets/owner/corpus(?:/([a-z-]+)/(\w+)/?(.*))?", path)
        kind, revision, name = found.groups() if found else ("", None, None)
        if not found:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif revision not in (None, "main", hub.revision):
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif kind == "tree":
            self._send(200, json.dumps(hub.entries({*hub.files})).encode())
        elif kind == "paths-info":
            self._send(200, json.dumps(hub.entries({*parse_qs(body.decode())["paths"]})).encode())
        elif kind != "resolve":
            files = [{"rfilename": name} for name in sorted(hub.files)]
            self._send(200, json.dumps({"id": "owner/corpus", "sha": hub.revision, "siblings": files}).encode())
        elif name not in hub.files:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.revision})
        else:
            content = hub.files[name]
            self._send(200, content, {"ETag": f'"{sha1(content).hexdigest()}"', "X-Repo-Commit": hub.revision})

    do_HEAD = do_GET = do_POST = do_CONNECT = _answer  # noqa: N815

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else content)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


# `datasets` reads its environment on import, so each run needs its own process.
_CLIENT = """
import json, sys
from pathlib import Path
from tests.data.cases import translate
from transformer.core.errors import UserError
try:
    translate(Path(sys.argv[1]), source="hub", **json.loads(sys.argv[2]))
except UserError as error:
    sys.exit(f"UserError: {error}")
"""


def run(hub: Hub, tmp_path: Path, **changes: Any) -> str:
    """What a run of the stage says; the server is also its proxy, so it sees requests to any other host."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "DATASETS_"))}
    here = f"http://127.0.0.1:{hub.server_address[1]}"
    own = {"HF_ENDPOINT": here, "HF_HOME": str(tmp_path / "home"), "HTTPS_PROXY": here, "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-c", _CLIENT, str(tmp_path), json.dumps(changes)]
    result = subprocess.run(
        command, cwd=ROOT, env=inherited | own, capture_output=True, text=True, timeout=120, check=False
    )
    assert not result.stdout and (not result.stderr or re.fullmatch(r"UserError: [^\n]+\n", result.stderr)), result
    return result.stderr


def test_rows_come_from_the_data_set_alone_and_nothing_else_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    assert run(hub, tmp_path) == ""
    corpus = tmp_path / "out" / "corpus"
    assert {split: stored(corpus, split) for split in PAIRS} == PAIRS
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["corpus"]
    assert all("/owner/corpus" in request for request in hub.requests), hub.requests
    hub.revision, hub.files = "1" * 40, {}  # then what the cache has of another commit is no answer
    assert "cannot load owner/corpus at 1111" in run(hub, tmp_path, revision=hub.revision)
    assert provenance(corpus)["revision"] == REVISION


def test_one_of_several_configurations(hub: Hub, tmp_path: Path) -> None:
    """The columns are in a mapping, as OPUS-100 has them."""
    card = ""
    for name in ("de-en", "fr-en"):
        card += f"- config_name: {name}\n  data_files:\n"
        for split, rows in PAIRS.items():
            card += f"  - split: {split}\n    path: {name}.{split}.jsonl\n"
            texts = [{"translation": {"en": row["en"], name[:2]: f"{name} {row['de']}"}} for row in rows]
            hub.files[f"{name}.{split}.jsonl"] = json_lines(texts)
    hub.files["README.md"] = f"---\nconfigs:\n{card}---\n".encode()
    message = run(hub, tmp_path, configuration="it-en")
    assert all(name in message for name in ("de-en", "fr-en", "set `configuration`"))
    assert run(hub, tmp_path, configuration="de-en") == ""
    expected = [{**row, "de": f"de-en {row['de']}"} for row in PAIRS["test"]]
    assert stored(tmp_path / "out" / "corpus", "test") == expected


def test_an_unreachable_hub_names_the_ways_out_soon(tmp_path: Path) -> None:
    with Hub() as stopped:
        pass
    start = time.monotonic()
    message = run(stopped, tmp_path)
    assert time.monotonic() - start < 20
    assert all(way in message for way in ("`source: files`", "DATA=path", "`source: sample`", "HF_ENDPOINT"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repository": "nobody/nothing"}, "cannot load nobody/nothing"),
        ({"revision": "0" * 40}, f"owner/corpus at {'0' * 40} from the Hub (RevisionNotFound"),
        ({}, "owner/corpus, train, row 1: not UTF"),
    ],
)
def test_what_cannot_be_read_is_one_line(changes: dict[str, str], message: str, hub: Hub, tmp_path: Path) -> None:
    hub.files["train.jsonl"] = hub.files["train.jsonl"].replace("Ä".encode(), b"\xff", 1)
    assert message in run(hub, tmp_path, **changes)
    assert not [*(tmp_path / "out").iterdir()]
