"""PostgreSQL, an S3 server and MLflow as deploy/compose.yaml starts it, all on loopback and without containers."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.kit import clean_environment, free_port, start_server, stop_server, until

_UNPRIVILEGED = "postgres"  # Debian's package makes this user


def composed() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    return content


def make_secrets(folder: Path) -> Path:
    """Run the commands of docs/machines.md in a folder; returns the folder with the secrets."""
    page = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    (block,) = (found for found in re.findall(r"(?:^ {4}.*\n)+", page, re.MULTILINE) if "openssl" in found)
    (folder / "deploy").mkdir()
    subprocess.run(["sh", "-euc", block], cwd=folder, check=True)
    return folder / "deploy" / "secrets"


def initdb() -> Path:
    """Skip the tests where PostgreSQL is not installed."""
    found = [shutil.which("initdb"), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")))]
    if not any(found):
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    return Path(next(filter(None, found)))


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
        self.programs = initdb().resolve().parent
        own = ("--username=mlflow", f"--pwfile={copied}", "--auth=scram-sha-256", f"--pgdata={folder}/data")
        self._run("initdb", *own)

    def uri(self, database: str) -> str:
        return f"postgresql+psycopg2://mlflow@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> None:
        self._run("createdb", "--host=127.0.0.1", f"--port={self.port}", "--username=mlflow", database)

    def start(self) -> None:
        options = [f"--unix_socket_directories={self.folder}", "--listen_addresses=127.0.0.1"]
        command = [str(self.programs / "postgres"), "-D", f"{self.folder}/data", "-p", str(self.port), *options]
        with (self.folder / "log").open("ab") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, user=self.owner, cwd=self.folder)
        ready = [str(self.programs / "pg_isready"), "--host=127.0.0.1", f"--port={self.port}", "--quiet"]
        until(lambda: subprocess.run(ready).returncode == 0, self.process)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)

    def _run(self, program: str, *arguments: str) -> None:
        command, env = [str(self.programs / program), *arguments], clean_environment(PGPASSWORD=self.password)
        done = subprocess.run(command, user=self.owner, cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


class Deployed:
    """The service `mlflow` of deploy/compose.yaml: its command and settings, with the addresses of this machine."""

    def __init__(self, folder: Path, postgres: Postgres, s3: str, secret: Path, database: str) -> None:
        self.folder, self.port = folder, free_port()
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
        self.process = start_server(self.command, f"{self.uri}/health", self.folder, self.environment, log)

    def stop(self) -> None:
        stop_server(self.process)


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a real, empty S3 server on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    finally:
        server.stop()


@contextmanager
def running(folder: Path) -> Iterator[tuple[Postgres, str, Path]]:
    """A PostgreSQL without databases, the address of an empty S3 server, and the folder with the secrets."""
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed (requirements-dev.lock has it)")
    initdb()
    secret = make_secrets(folder)
    with s3_server() as s3, tempfile.TemporaryDirectory() as place:  # the fixture's folder is root's alone
        postgres = Postgres(Path(place), secret / "postgres_password")
        postgres.start()
        try:
            yield postgres, s3, secret
        finally:
            postgres.stop()
