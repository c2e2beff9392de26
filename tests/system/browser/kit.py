"""What the browser tests share."""

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

PHONE, TABLET, DESKTOP = 390, 820, 1440
"""CSS pixels."""


def require_accessible(page: Page) -> None:
    """Fail with what axe-core finds against WCAG 2.1 A and AA, such as a contrast below 4.5."""
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = Axe().run(page, options=options).response["violations"]
    assert not found, [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found]


def require_fit(page: Page, width: int) -> None:
    """Fail if the page is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
