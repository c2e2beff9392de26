"""What deploy/ starts for a team. Its command runs in tests/system/tracking; there are no containers here."""

import json
import re
import stat
from pathlib import Path

from tests.conftest import ROOT
from tests.kit import read_versions
from tests.system.tracking.services import composed, make_secrets

PINNED = re.compile(r"[\w./-]+:\d+(\.\d+)+(-[\w-]+)?")
SECRET = re.compile(r"password|secret|key|token|credential", re.IGNORECASE)
SERVICES = composed()["services"]


def test_nothing_listens_for_other_machines() -> None:
    for service in SERVICES.values():
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
        assert not service.keys() & {"network_mode", "privileged", "expose"}


def test_secrets_are_files() -> None:
    """No setting that is called one has a value; each file is declared, and named where git ignores it."""
    declared = composed()["secrets"]
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            named = str(value).removeprefix("/run/secrets/") in service.get("secrets", [])
            assert named or not SECRET.search(variable), variable
            assert not re.search(r"//[^/@\s]*:[^/@\s]*@", str(value)), "a password in an address"
        assert all(declared[secret]["file"].startswith("secrets/") for secret in service.get("secrets", []))
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_images_are_pinned_and_mlflow_is_the_lock_s() -> None:
    locked, dockerfile = read_versions(ROOT / "requirements.lock"), (ROOT / "deploy/Dockerfile").read_text()
    assert all(PINNED.fullmatch(service["image"]) for service in SERVICES.values())
    assert SERVICES["mlflow"]["image"] == f"transformer-mlflow:{locked['mlflow']}"
    (base,) = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert PINNED.fullmatch(base) and base.startswith(f"python:{locked['python']}.")
    constraints = re.findall(r"--constraint (\S+)", dockerfile)
    assert constraints == ["/locks/requirements.lock", "/locks/requirements-dev.lock"]
    assert "USER nobody" in dockerfile.splitlines()


def test_mlflow_names_its_hosts() -> None:
    service = SERVICES["mlflow"]
    hosts = service["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"].split(",")
    assert {"localhost:5000", "127.0.0.1:5000"} <= {*hosts} and not [host for host in hosts if "*" in host]
    assert "--disable-security-middleware" not in service["command"]


def test_the_documented_commands_make_every_secret(tmp_path: Path) -> None:
    folder = make_secrets(tmp_path)
    declared = {secret["file"] for secret in composed()["secrets"].values()}
    assert {f"secrets/{path.name}" for path in folder.iterdir()} == declared
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    (identity,) = json.loads((folder / "s3_users.json").read_text())["identities"]
    (credentials,) = identity["credentials"]
    assert f"aws_secret_access_key = {credentials['secretKey']}\n" in (folder / "s3_credentials").read_text()
    assert len(credentials["secretKey"]) == len((folder / "postgres_password").read_text().strip()) == 48
