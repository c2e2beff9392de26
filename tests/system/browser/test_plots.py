"""DVC's plots in a browser without a network."""

import pytest
from playwright.sync_api import Browser

from tests.conftest import Clone


@pytest.mark.parametrize("command", [("show",), ("diff", "HEAD")])
def test_plots_are_drawn_without_a_network(command: tuple[str, ...], browser: Browser, workflow: Clone) -> None:
    workflow.run("python", "-m", "transformer.commands.vega")
    workflow.run("dvc", "plots", *command)
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((workflow.root / "dvc_plots" / "index.html").as_uri())
    page.wait_for_selector(".vega-embed")
    assert [url for url in asked if not url.startswith("file:")] == []
    drawn = page.locator(".vega-embed svg.marks, .vega-embed canvas").count()
    assert drawn == page.locator(".vega-embed").count() >= 9
    assert page.get_by_text("BLEU by source length, test").count() == 1
    page.close()
