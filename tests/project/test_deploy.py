"""What deploy/ starts for a team. Its command runs in tests/system/tracking; there are no containers here."""

import json
import re
import stat
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kit import read_versions
from tests.system.tracking.services import composed, make_secrets

PINNED = re.compile(r"[\w./-]+:\d+(\.\d+)+(-[\w-]+)?")
SECRET = re.compile(r"password|secret|key|token|credential", re.IGNORECASE)
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
SERVICES = composed()["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_listens_for_other_machines(name: str) -> None:
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))
    assert not SERVICES[name].keys() & {"network_mode", "privileged", "expose"}


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_are_files(name: str) -> None:
    """No setting that is called one has a value; each file is declared, and named where git ignores it."""
    service, declared = SERVICES[name], composed()["secrets"]
    for variable, value in service.get("environment", {}).items():
        assert not SECRET.search(variable) or str(value).removeprefix("/run/secrets/") in service["secrets"], variable
        assert not re.search(r"//[^/@\s]*:[^/@\s]*@", str(value)), "a password in an address"
    assert all(declared[secret]["file"].startswith("secrets/") for secret in service.get("secrets", []))
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_images_are_pinned_and_mlflow_is_the_lock_s() -> None:
    assert all(PINNED.fullmatch(service["image"]) for service in SERVICES.values())
    locked = read_versions(ROOT / "requirements.lock")
    assert SERVICES["mlflow"]["image"] == f"transformer-mlflow:{locked['mlflow']}"
    (base,) = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert PINNED.fullmatch(base) and base.startswith(f"python:{locked['python']}.")


def test_the_image_installs_what_the_locks_pin() -> None:
    locked = read_versions(ROOT / "requirements.lock") | read_versions(ROOT / "requirements-dev.lock")
    (command,) = re.findall(r"^RUN pip install (.*?[^\\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    words = command.replace("\\\n", " ").split()
    assert [words[place + 1] for place, word in enumerate(words) if word == "--constraint"] == [
        "/locks/requirements.lock",
        "/locks/requirements-dev.lock",
    ]
    packages = [word for word in words if not word.startswith(("-", "/"))]
    assert packages == ["mlflow", "boto3", "psycopg2-binary"] and set(packages) <= locked.keys()
    assert "USER nobody" in DOCKERFILE.splitlines()


def test_mlflow_upgrades_and_names_its_hosts() -> None:
    service = SERVICES["mlflow"]
    hosts = service["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"].split(",")
    assert {"localhost:5000", "127.0.0.1:5000"} <= {*hosts} and not [host for host in hosts if "*" in host]
    assert "--disable-security-middleware" not in service["command"]
    assert '"db", "upgrade"' in (ROOT / "deploy" / "start.py").read_text()
    assert service["depends_on"]["postgres"] == {"condition": "service_healthy"}


def test_the_documented_commands_make_every_secret(tmp_path: Path) -> None:
    folder = make_secrets(tmp_path)
    assert {f"secrets/{path.name}" for path in folder.iterdir()} == {
        secret["file"] for secret in composed()["secrets"].values()
    }
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    (identity,) = json.loads((folder / "s3_users.json").read_text())["identities"]
    (credentials,) = identity["credentials"]
    assert f"aws_secret_access_key = {credentials['secretKey']}\n" in (folder / "s3_credentials").read_text()
    assert len(credentials["secretKey"]) == len((folder / "postgres_password").read_text().strip()) == 48
