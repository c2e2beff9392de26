"""A running `transformer serve`, and how its user asks it."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.kit import ROOT, clean_environment, free_port, start_server, stop_server


def environment(**variables: str) -> dict[str, str]:
    return clean_environment(PYTHONPATH=str(ROOT), PATH="/usr/bin:/bin", OMP_NUM_THREADS="1", **variables)


COMMAND = [sys.executable, "-m", "transformer", "serve"]


class Server:
    """A server of a model, in the workspace `root`."""

    def __init__(self, root: Path, model: str = "model", *options: str, **variables: str) -> None:
        self.port, self.log = free_port(), root / "log"
        self.log.unlink(missing_ok=True)
        self.address = f"http://127.0.0.1:{self.port}"
        command = [*COMMAND, "--model", model, "--port", str(self.port), *options]
        self.process = start_server(command, f"{self.address}/ping", root, environment(**variables), self.log)

    def post(self, body: bytes, kind: str = "application/json") -> tuple[int, Any]:
        """The status, and the answer or MLflow's message."""
        answer = httpx.post(f"{self.address}/invocations", content=body, headers={"Content-Type": kind}, timeout=120)
        return answer.status_code, answer.json() if answer.text[:1] == "{" else answer.text

    def ask(self, texts: list[Any], **params: Any) -> tuple[int, Any]:
        split = {"columns": ["text"], "data": [[text] for text in texts]}
        return self.post(json.dumps({"dataframe_split": split, "params": params}).encode())

    def stop(self) -> None:
        stop_server(self.process)
