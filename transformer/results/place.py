"""Where the report page is, and what it was made from."""

import hashlib
import json
from pathlib import Path

from transformer.results.chain import VIEWS, Chain
from transformer.results.find import results_before
from transformer.results.origin import origin_of, uncommitted_code

_HEAD = 1000  # characters


def page_path(root: Path, task: str) -> Path:
    """The path of a task's report page in a workspace."""
    return root / "reports" / task / "report.html"


def is_page_of(root: Path, chain: Chain) -> bool:
    """Whether the page in the workspace shows this result and is up to date."""
    page = page_path(root, chain.task)
    return _named(page, "row") == chain.row_key() and _named(page, "made-from") == made_from(root, chain)


def made_from(root: Path, chain: Chain) -> str:
    """The digest of everything that a result's page shows: the result, its origin, and the result before it."""
    before, origin = results_before(root, chain), origin_of(root, chain)
    content = [
        chain.row_key(),
        *(chain.view_md5(name) for name in VIEWS),
        [origin.commit, origin.experiment, uncommitted_code(root, chain, origin.commit)],
        before and [before.commit, before.chains[chain.task].row_key()],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _named(page: Path, name: str) -> str | None:
    """The value of a `<meta>` tag in the page's head; None if there is none."""
    try:
        with page.open(encoding="utf-8", errors="replace") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    return head.partition(f'name="{name}" content="')[2].partition('"')[0] or None
