"""The documentation builds without a warning, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

from tests.kit import ROOT

REMOTE = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)[^>]+src=["'](?:https?:)?//"""
    r"""|<link(?![^>]+rel=["'](?:canonical|author|license|next|prev|search|index)["'])[^>]+href=["'](?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//"""
)


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(tmp_path / "site"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    files = [path for kind in ("html", "css", "js") for path in (tmp_path / "site").rglob(f"*.{kind}")]
    assert {"index.html", "start.html", "parameters.html", "api.html"} <= {path.name for path in files}
    assert [path.name for path in files if REMOTE.search(path.read_text(encoding="utf-8"))] == []
    assert "Open an exported model" in (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
