"""Where the page lies, and which result it shows."""

from pathlib import Path

_HEAD = 1000  # characters


def page_path(root: Path, task: str) -> Path:
    """The page of the result in a workspace."""
    return root / "reports" / task / "report.html"


def row_key_of(page: Path) -> str | None:
    """The key of the result that a page shows; None where there is no page."""
    try:
        with page.open(encoding="utf-8", errors="replace") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    return head.partition('name="row" content="')[2].partition('"')[0] or None
