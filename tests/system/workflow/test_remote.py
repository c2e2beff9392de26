"""Results fetched through a remote, and broken caches."""

import hashlib
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Clone, clone_at, copied
from tests.kit import TASKS
from tests.system.tracking.services import s3_server

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(params=["local", "s3"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of an empty remote, and its settings."""
    if request.param == "local":
        yield str(tmp_path / "remote"), {}
        return
    import boto3

    names = ("aws_access_key_id", "aws_secret_access_key", "region_name")
    with s3_server() as endpoint:
        client = boto3.client("s3", endpoint_url=endpoint, **dict(zip(names, CREDENTIALS.values(), strict=True)))
        client.create_bucket(Bucket="results")
        yield "s3://results/cache", {"endpointurl": endpoint}


def use(clone: Clone, remote: tuple[str, dict[str, str]]) -> None:
    """Configure it as the clone's remote, outside git."""
    address, settings = remote
    clone.run("dvc", "remote", "add", "--local", "--default", "--force", "store", address)
    for name, value in settings.items():
        clone.run("dvc", "remote", "modify", "--local", "store", name, value)


def test_a_fresh_clone_that_pulls_writes_the_pages_and_the_runs(
    workflow: Clone, remote: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    pushing = clone_at(workflow.root, **CREDENTIALS)
    use(pushing, remote)
    try:
        pushing.run("dvc", "push", "--quiet")
    finally:
        (workflow.root / ".dvc" / "config.local").unlink()
    workflow.run("git", "clone", "--quiet", str(workflow.root), str(tmp_path / "fresh"))
    fresh = clone_at(tmp_path / "fresh", **CREDENTIALS)
    use(fresh, remote)
    fresh.run("dvc", "pull", "--quiet")
    assert sorted(fresh.repro()) == sorted(f"report@{task}" for task in TASKS)
    assert fresh.repro() == []
    assert fresh.run("transformer", "sync").stdout == "0 runs written\n"
    assert (
        clone_at(fresh.root).run("transformer", "translate", "Ein Hund.").stdout
        == workflow.run("transformer", "translate", "Ein Hund.").stdout
    )
    for task in TASKS:
        assert (fresh.root / f"reports/{task}/report.html").exists()
    assert fresh.run("git", "status", "--porcelain").stdout == ""


def test_a_broken_cache_file_is_made_again(workflow: Clone, tmp_path: Path) -> None:
    clone = copied(workflow, tmp_path / "copy")
    lock = (clone.root / "dvc.lock").read_bytes()
    tokens = clone.root / "data" / "translation" / "tokens"
    before = {path.name: path.read_bytes() for path in tokens.iterdir()}
    md5 = hashlib.md5(before["train.jsonl"], usedforsecurity=False).hexdigest()
    cached = clone.root / ".dvc/cache/files/md5" / md5[:2] / md5[2:]
    cached.chmod(stat.S_IWUSR | stat.S_IRUSR)
    cached.write_bytes(cached.read_bytes()[:-100])
    shutil.rmtree(tokens)
    assert clone.repro() == ["tokenize@translation"]
    assert {path.name: path.read_bytes() for path in tokens.iterdir()} == before
    assert (clone.root / "dvc.lock").read_bytes() == lock
    assert cached.read_bytes() == before["train.jsonl"]
