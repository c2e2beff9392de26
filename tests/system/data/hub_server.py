"""A loopback server with the Hugging Face Hub endpoints that `datasets` uses, and a client process."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from tests.kit import ROOT


@dataclass
class Hub:
    """One data set at one commit: its files by path, and those of which only the first half is served."""

    repository: str
    revision: str
    files: dict[str, bytes]
    truncated: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""

    def entries(self, paths: set[str]) -> list[dict[str, Any]]:
        """The entries of these paths in the Hub's listings."""
        found = [
            {"type": "file", "oid": sha1(self.files[path]).hexdigest(), "size": len(self.files[path]), "path": path}
            for path in sorted(self.files.keys() & paths)
        ]
        folders = {parent for path in self.files for parent in _parents(path)} & paths
        return found + [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in sorted(folders)]

    def inside(self, folder: str) -> set[str]:
        """All paths under a folder."""
        paths = {path for file in self.files for path in (file, *_parents(file))}
        return {path for path in paths if not folder or path.startswith(f"{folder}/")}


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in Path(path).parents if str(parent) != "."]


class _Server(ThreadingHTTPServer):
    hub: Hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        hub = cast(_Server, self.server).hub
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        hub.requests.append(f"{self.command} {path}")
        api, files = f"/api/datasets/{hub.repository}", f"/datasets/{hub.repository}/resolve/"
        if path == api or path.startswith(f"{api}/"):
            self._api(hub, path.removeprefix(api).strip("/"), body)
        elif path.startswith(files):
            revision, _, name = path.removeprefix(files).partition("/")
            self._file(hub, revision, name)
        else:
            self._fail("RepoNotFound")

    do_HEAD = do_GET = do_POST = do_CONNECT = _answer  # noqa: N815

    def _api(self, hub: Hub, path: str, body: bytes) -> None:
        kind, _, rest = path.partition("/")
        revision, _, folder = rest.partition("/")
        if revision not in ("", "main", hub.revision):
            self._fail("RevisionNotFound")
        elif kind == "tree":
            self._json(hub.entries(hub.inside(folder)))
        elif kind == "paths-info":
            wanted = _paths(body, self.headers.get("Content-Type", ""))
            self._json(hub.entries(wanted))
        else:
            siblings = [{"rfilename": name} for name in sorted(hub.files)]
            self._json({"id": hub.repository, "sha": hub.revision, "private": False, "tags": [], "siblings": siblings})

    def _file(self, hub: Hub, revision: str, name: str) -> None:
        if revision not in ("main", hub.revision):
            self._fail("RevisionNotFound")
        elif name not in hub.files:
            self._fail("EntryNotFound", {"X-Repo-Commit": hub.revision})
        else:
            content = hub.files[name]
            headers = {"ETag": f'"{sha1(content).hexdigest()}"', "X-Repo-Commit": hub.revision}
            self._send(content, headers, truncated=name in hub.truncated)

    def _send(self, content: bytes, headers: Mapping[str, str], *, truncated: bool = False) -> None:
        start = 0
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or len(content)), len(content) - 1)
            headers = {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
            content = content[start : end + 1]
        self.send_response(206 if wanted else 200)
        for name, value in {**headers, "Content-Length": str(len(content)), "Accept-Ranges": "bytes"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(content[: len(content) // 2] if truncated else content)
        self.close_connection = truncated

    def _json(self, value: object) -> None:
        self._send(json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _fail(self, code: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(404)
        for name, value in {"X-Error-Code": code, "X-Error-Message": code, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _paths(body: bytes, content_type: str) -> set[str]:
    if "json" in content_type:
        return set(json.loads(body)["paths"])
    return set(parse_qs(body.decode())["paths"])


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve the data set until the block ends; sets `hub.endpoint`."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.hub = hub
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# `datasets` reads its environment on import, so each run needs its own process. It prints its result or the message of
# the UserError, and nothing else may appear.
_CLIENT = """
import json, sys, importlib
from pathlib import Path
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import open_task
task = open_task(sys.argv[1])
stage, place = task.family.stage("download"), Path(sys.argv[3])
try:
    params = stage.Params.model_validate_json(sys.argv[2])
    print(json.dumps(stage.run(task, params, Paths(data=place.parent, models=place, reports=place), Observer())))
except UserError as error:
    sys.exit(f"UserError: {error}")
"""


def download(
    task: str, params: Mapping[str, Any], *, output: Path, endpoint: str, home: Path
) -> subprocess.CompletedProcess[str]:
    """Run a download stage in a new process that uses `endpoint` as the Hub and keeps its cache in `home`.

    `endpoint` is also its proxy, so the server sees requests to any other host.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "DATASETS_"))}
    hub = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HTTPS_PROXY": endpoint, "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-c", _CLIENT, task, json.dumps(params), str(output)]
    return subprocess.run(
        command, cwd=ROOT, env=inherited | hub, capture_output=True, text=True, timeout=120, check=False
    )
