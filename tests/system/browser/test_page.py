"""The report as a reader sees it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.conftest import Clone
from tests.kit import TASKS
from tests.reporting.test_page import HOSTILE
from tests.system.browser.kit import PHONE, require_accessible, require_fit
from transformer.reporting.attention_maps import Axis, Drawing, write_explorer
from transformer.reporting.content import Example, Marked, Section, Table, line_chart
from transformer.reporting.content import Page as Content
from transformer.reporting.page import render
from transformer.reporting.style import FILE

SOURCE = ["<bos>", "ein", "Hund", "<eos>"]
TARGET = ["a", "dog", "<eos>"]


def weights(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(seed).random((len(TARGET), len(SOURCE)), dtype=np.float32)
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A report with hostile texts, on a phone in dark mode; fails on any error in the browser."""
    panels = {f"layer 1, head {number}": weights(number) for number in (1, 2)}
    title = "Cross-attention: ein\tHund .\n→ a dog ."
    cross = Drawing("cross_attention", title, panels, Axis("target", TARGET), Axis("source", SOURCE))
    own = Drawing("encoder_attention", "", {"layer 1, head 1": np.eye(4, dtype=np.float32)}, cross.keys, cross.keys)
    write_explorer(tmp_path, [("Ein Hund " * 20, [cross, own]), (HOSTILE, [own])])
    rows = [["1", "ein Hund"], ["2", HOSTILE * 3], ["3", "eine Katze " * 30]]
    long = Table("Errors", ["id", "text"], rows, long=True)
    content = Content(
        title=HOSTILE,
        headline="BLEU 1.0",
        compared=[HOSTILE],
        chart=line_chart("Loss", {"x": ["1", "2"], "y": ["2", "1"]}, x="x", ys={"y": "loss"}, y_label="nats"),
        examples=[Example("worst", [("source", HOSTILE), ("answer", Marked([("ein ", False), ("Hund", True)]))])],
        sections=[Section("Errors", HOSTILE, [HOSTILE], tables=[long]), Section("More", tables=[long])],
        attention=(tmp_path / FILE).read_text(encoding="utf-8"),
    )
    path = tmp_path / "report.html"
    path.write_text(render(content), encoding="utf-8")
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": PHONE, "height": 800}, color_scheme="dark")
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: None if request.url.startswith("file:") else complaints.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    yield page
    page.close()
    assert complaints == []


def cells(page: Page) -> list[list[float]]:
    rows = page.locator("#map tbody tr").all()
    return [[float(cell) for cell in row.locator("td .unseen").all_text_contents()] for row in rows]


def test_a_map_is_captioned_with_its_text_and_axes(opened: Page) -> None:
    caption = "Cross-attention: ein Hund . → a dog . (rows: target, columns: source)"
    assert opened.locator("#map caption").text_content() == caption


def test_every_text_map_and_head_can_be_chosen(opened: Page) -> None:
    np.testing.assert_allclose(cells(opened), weights(1), atol=0.01)
    opened.select_option("#choice-panel", label="layer 1, head 2")
    np.testing.assert_allclose(cells(opened), weights(2), atol=0.01)
    assert opened.locator("#map thead th").all_text_contents() == SOURCE
    opened.get_by_role("button", name="Next head").click()
    np.testing.assert_allclose(cells(opened), weights(1), atol=0.01, err_msg="the first after the last")
    opened.get_by_role("button", name="Previous head").click()
    np.testing.assert_allclose(cells(opened), weights(2), atol=0.01)
    opened.select_option("#choice-map", label="encoder attention")
    np.testing.assert_allclose(cells(opened), np.eye(4), atol=0.01)
    opened.select_option("#choice-text", index=1)
    assert opened.locator("#choice-map option").all_text_contents() == ["encoder attention"]
    assert opened.locator("#map tbody th").all_text_contents() == SOURCE


def test_rows_can_be_searched(opened: Page) -> None:
    field = opened.get_by_label("Show rows of Errors with").first
    field.fill("HUND")
    shown = opened.locator("details", has=field).first.locator("tbody tr:visible")
    assert shown.count() == 1 and "ein Hund" in shown.inner_text()
    field.fill("")
    assert shown.count() == 3


@pytest.mark.parametrize("width", [PHONE, 1200])
def test_a_very_long_word_leaves_the_other_columns_their_place(width: int, browser: Browser) -> None:
    sentence, address = "Ein Hund schl\u00e4ft auf einer Bank. " * 3, "https://example.org/" + "a" * 5000
    header = ["split", "kind", "chrF", "source", "reference", "translation"]
    rows = [["test", "worst", "1.0", sentence, sentence, address], ["test", "worst", "2.0", address, sentence, "x"]]
    page = browser.new_page(viewport={"width": width, "height": 800})
    table = Table("Sentences", header, rows, long=True)
    page.set_content(render(Content("a", "b", [], None, [], [Section("Sentences", tables=[table])], "")))
    page.evaluate("document.querySelector('details').open = true")
    assert page.evaluate("document.querySelector('table').offsetWidth") <= 3 * width
    for column in page.locator("tbody tr").first.locator("td").all()[2:]:
        box = column.bounding_box()
        assert box is not None and box["width"] > 60, "a column is squeezed to nothing"
    page.close()


def test_it_fits_a_phone_and_follows_the_dark(opened: Page) -> None:
    require_fit(opened, PHONE)
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    opened.emulate_media(color_scheme="light")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened: Page, scheme: str) -> None:
    opened.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    require_accessible(opened)


@pytest.mark.parametrize("task", TASKS)
def test_a_result_fits_at_400_percent_and_folds_all_but_its_first_screen(
    task: str, browser: Browser, workflow: Clone
) -> None:
    page = browser.new_page(viewport={"width": 320, "height": 256})  # 1280 x 1024 at 400 %
    page.goto((workflow.root / "reports" / task / "report.html").as_uri())
    require_fit(page, 320)
    assert page.locator(".first dl").count() == 3, "examples"
    assert not page.locator("main > section > details[open]").count()
    require_accessible(page)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    require_fit(page, 320)
    require_accessible(page)
    page.close()


def test_paper_has_all_of_it(opened: Page) -> None:
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(opened.evaluate("[...document.querySelectorAll('details')].map((each) => each.open)"))
    opened.emulate_media(media="print")
    assert opened.evaluate("getComputedStyle(document.querySelector('.long')).maxHeight") == "none"
    assert not opened.locator("#choices").is_visible()
