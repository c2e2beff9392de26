"""The tracking store on a real file system that is full at first, and later has space: `make stress`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tracking.conftest import run_in
from tests.tracking.test_workflow import SYNC

pytestmark = pytest.mark.stress
EMPTY_STORE = """
from pathlib import Path
from transformer.tracking.store import open_store
open_store(Path.cwd(), "translation")
"""
SPARE = 20_000  # bytes besides an empty store: fewer than the rows take


@pytest.mark.parametrize("share", ["no store", "an empty store"])
def test_a_full_disk_costs_lines_and_the_rows_come_later(share: str, dvc_repository: Path) -> None:
    """In its own namespace, which needs no privileges if the kernel allows it."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this system lets users make no namespaces")
    small, size = dvc_repository / "small", SPARE
    small.mkdir()
    uri = {"MLFLOW_TRACKING_URI": f"sqlite:///{small}/mlflow.db"}
    if share == "an empty store":
        run_in(dvc_repository, sys.executable, "-c", EMPTY_STORE, env=uri)
        size += (small / "mlflow.db").stat().st_size
    script = f"""
        cp -a small empty && mount -t tmpfs -o size={size} none small && cp -a empty/. small
        dvc repro && touch done
        echo; mount -o remount,size=100m small
        {sys.executable} -c '{SYNC}' && {sys.executable} -c '{SYNC}'
    """
    printed = run_in(dvc_repository, "unshare", "-rm", "sh", "-c", script, env=uri)
    assert (dvc_repository / "done").exists()
    assert (dvc_repository / "models/sentiment/bundle/config.json").is_file()
    said = [line for line in printed.splitlines() if "database or disk is full" in line]
    assert said and set(said) == {"tracking: database or disk is full; run `transformer sync` later"}, printed
    assert "Traceback" not in printed, printed
    assert [line for line in printed.splitlines() if line.startswith("rows ")] == ["rows 2", "rows 0"]
