"""PostgreSQL, an S3 server and MLflow as deploy/compose.yaml starts it, all on loopback and without containers."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.kit import clean_environment, free_port

COMPOSE = ROOT / "deploy" / "compose.yaml"
_PLACES = "/usr/lib/postgresql/*/bin/initdb"
_UNPRIVILEGED = "postgres"


def composed() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return content


def make_secrets(folder: Path) -> Path:
    """Run the commands of docs/machines.md in a folder; returns the folder with the secrets."""
    page = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    (block,) = (found for found in re.findall(r"(?:^ {4}.*\n)+", page, re.MULTILINE) if "openssl" in found)
    (folder / "deploy").mkdir()
    subprocess.run(["sh", "-euc", block], cwd=folder, check=True)
    return folder / "deploy" / "secrets"


class Postgres:
    """A private cluster, run by an unprivileged user since PostgreSQL refuses root."""

    def __init__(self, folder: Path, password: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.password = password.read_text().strip()
        self.process: subprocess.Popen[bytes] | None = None
        copied = folder / "password"
        shutil.copy(password, copied)
        self.owner = _UNPRIVILEGED if os.getuid() == 0 else None
        if self.owner:
            for path in (folder, copied):
                shutil.chown(path, self.owner, self.owner)
        found = sorted(Path("/").glob(_PLACES.removeprefix("/")))
        program = shutil.which("initdb") or (str(found[-1]) if found else None)
        assert program is not None
        self.programs = Path(program).resolve().parent
        self._run(
            "initdb", "--username=mlflow", f"--pwfile={copied}", "--auth=scram-sha-256", f"--pgdata={folder}/data"
        )

    @staticmethod
    def missing() -> str | None:
        """Why it cannot be started here."""
        if shutil.which("initdb") is None and not [*Path("/").glob(_PLACES.removeprefix("/"))]:
            return "PostgreSQL is not installed (apt-get install postgresql)"
        if os.getuid() == 0 and subprocess.run(["id", _UNPRIVILEGED], capture_output=True).returncode:
            return f"PostgreSQL refuses root, and there is no user {_UNPRIVILEGED}"
        return None

    def uri(self, database: str) -> str:
        return f"postgresql+psycopg2://mlflow@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> None:
        self._run("createdb", "--host=127.0.0.1", f"--port={self.port}", "--username=mlflow", database)

    def start(self) -> None:
        options = [f"--unix_socket_directories={self.folder}", "--listen_addresses=127.0.0.1"]
        command = [str(self.programs / "postgres"), "-D", f"{self.folder}/data", "-p", str(self.port), *options]
        log = self.folder / "log"
        with log.open("ab") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, user=self.owner, cwd=self.folder)
        deadline = time.monotonic() + 60
        ready = [str(self.programs / "pg_isready"), "--host=127.0.0.1", f"--port={self.port}", "--quiet"]
        while subprocess.run(ready).returncode:
            assert time.monotonic() < deadline and self.process.poll() is None, log.read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            user=self.owner,
            cwd=self.folder,
            env=clean_environment(PGPASSWORD=self.password),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


class Deployed:
    """The service `mlflow` of deploy/compose.yaml: its command and settings, with the addresses of this machine."""

    def __init__(self, folder: Path, postgres: Postgres, s3: str, secret: Path, database: str) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        service = composed()["services"]["mlflow"]
        here = {
            "postgresql+psycopg2://mlflow@postgres:5432/mlflow": postgres.uri(database),
            "http://s3:8333": s3,
            "/run/secrets": str(secret),
            "/start.py": str(ROOT / "deploy" / "start.py"),
            "--host=0.0.0.0": "--host=127.0.0.1",
            "--workers=4": "--workers=2",
            ":5000": f":{self.port}",
            "=5000": f"={self.port}",
        }

        def local(text: str) -> str:
            for there, replacement in here.items():
                text = text.replace(there, replacement)
            return text

        program, *arguments = service["command"]
        assert program == "python"
        self.command = [sys.executable, *map(local, arguments)]
        self.environment = clean_environment() | {name: local(text) for name, text in service["environment"].items()}

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        log = self.folder / "mlflow.log"
        with log.open("ab") as stream:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=1):
                return
            time.sleep(0.2)
        raise AssertionError(log.read_text())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            self.process.wait(timeout=60)
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


@contextmanager
def running(folder: Path) -> Iterator[tuple[Postgres, str, Path]]:
    """A PostgreSQL without databases, the address of an empty S3 server, and the folder with the secrets."""
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed (requirements-dev.lock has it)")
    if reason := Postgres.missing():
        pytest.skip(reason)
    from moto.server import ThreadedMotoServer

    secret = make_secrets(folder)
    place = Path(tempfile.mkdtemp(prefix=f"postgres-{secrets.token_hex(4)}-"))  # the fixture's folder is root's alone
    s3 = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    s3.start()
    try:
        postgres = Postgres(place, secret / "postgres_password")
        try:
            postgres.start()
            yield postgres, f"http://127.0.0.1:{s3.get_host_and_port()[1]}", secret
        finally:
            postgres.stop()
    finally:
        s3.stop()
        shutil.rmtree(place, ignore_errors=True)
