"""The page to try a model, as people use it: a server of a small model for each family."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import Clone
from tests.inference.conftest import bundles
from tests.kit import TASKS, free_port, start_server, stop_server
from tests.system.browser.kit import DESKTOP, PHONE, TABLET, require_accessible, require_fit
from tests.system.serving.server import Server
from transformer.workflow.mlflow import save_model

__all__ = ["bundles"]
WORDS = ".tokens > [role=option]"  # a select has options of its own
EXAMPLES = {
    "translation": ["Ein roter Hund schläft .", "Ein Hund quasselt ."],
    "sentiment": ["Очень длинный фильм . " * 5_000, "The film is not good .", "A very good film ."],
    "language": ["The film is [MASK] .", "The [MASK] is good ."],
}


@pytest.fixture(scope="module")
def servers(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    found = {}
    for task in TASKS:
        root = tmp_path_factory.mktemp(task)
        (root / ".dvc").mkdir()
        for name in ("dvc.yaml", "params.yaml"):
            (root / name).touch()
        save_model(root / "model", bundles[task], task, examples=EXAMPLES[task])
        found[task] = Server(root)
    yield found
    for server in found.values():
        server.stop()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complains of, and requests to other places."""
    return []


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, browser: Browser, servers: dict[str, Server], complaints: list[str]
) -> Iterator[Page]:
    """The page of the parameter's task, with the first example answered."""
    server = servers[request.param]
    page = browser.new_page(viewport={"width": TABLET, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda each: None if each.url.startswith(server.address) else complaints.append(each.url))
    page.goto(server.address)
    expect(page.locator("#best")).to_be_visible(timeout=60_000)
    yield page
    page.close()


@pytest.fixture
def quiet(opened: Page, complaints: list[str]) -> Iterator[None]:
    """Nothing is loaded from elsewhere, and the browser has nothing to complain of."""
    yield
    assert complaints == [], opened.url


def of(task: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", [task], indirect=True, ids=str)


def ask(page: Page, text: str) -> None:
    page.get_by_label("Text", exact=True).fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_be_empty()


@of("translation")
@pytest.mark.usefixtures("quiet")
def test_a_translation_is_typed_read_and_compared(opened: Page, servers: dict[str, Server]) -> None:
    text = "Ein Hund quasselt ."
    ask(opened, text)
    _, content = servers["translation"].ask([text])
    expect(opened.locator("#best")).to_have_text(content["predictions"][0]["translation"] or "(nothing)")
    opened.get_by_label("Beam").select_option("5")
    expect(opened.locator("ol button")).to_have_count(5)
    _, content = servers["translation"].ask([text], beam_size=5, n_best=5)
    row = content["predictions"][0]
    expect(opened.locator("#best")).to_have_text(row["translation"] or "(nothing)")
    expect(opened.locator("#notes")).to_contain_text("quasselt")
    assert "quasselt" in opened.locator(".unknown").all_text_contents()[-1]
    alternatives = opened.locator("ol button")
    alternatives.nth(2).click()
    expect(opened.locator("#best")).to_have_text(row["translation_3"] or "(nothing)")
    assert [each.get_attribute("aria-pressed") for each in alternatives.all()].index("true") == 2
    opened.get_by_label("Beam").select_option("1")
    expect(alternatives).to_have_count(0)
    opened.get_by_label("Engine").select_option("torch")
    expect(opened.locator(".facts")).to_contain_text("torch answered in")


@of("translation")
@pytest.mark.usefixtures("quiet")
def test_a_word_shows_what_it_attends_to_by_mouse_and_by_keyboard(opened: Page) -> None:
    words, source = opened.locator(WORDS), opened.locator(".tokens").nth(1).locator("> span")
    hint = opened.locator("p.hint[role=status]")
    words.first.hover()
    expect(hint).to_contain_text(f"“{words.first.text_content()}” attends to")
    shares = [float(each.rstrip(" %")) for each in source.locator("small").all_text_contents() if each]
    framing = hint.inner_text().rpartition(" begin and end ")[2].rstrip(" %.").lstrip("<>")
    assert shares and 0 < sum(shares) + float(framing) <= 103
    shades = source.evaluate_all("(all) => all.map((each) => each.style.background)")
    assert len({*shades}) > 1, "what is attended to more has a stronger colour"
    words.first.focus()
    opened.keyboard.press("ArrowRight")
    assert words.nth(1).evaluate("(each) => each === document.activeElement")
    expect(hint).to_contain_text(f"“{words.nth(1).text_content()}” attends to")
    opened.keyboard.press("End")
    assert words.last.get_attribute("aria-selected") == "true"
    tabbable = words.evaluate_all("(all) => all.filter((each) => each.tabIndex === 0).length")
    assert tabbable == 1, "Tab passes the words at once"


@of("sentiment")
@pytest.mark.usefixtures("quiet")
def test_a_label_has_its_probability_and_the_words_that_decide(opened: Page, servers: dict[str, Server]) -> None:
    text = "A film that is not good ."
    ask(opened, text)
    _, content = servers["sentiment"].ask([text])
    row = content["predictions"][0]
    expect(opened.locator("#best")).to_have_text(row["label"])
    assert f"{100 * row['probability']:.1f} %" in opened.locator(".bars").inner_text()
    words = opened.locator(WORDS)
    assert words.all_text_contents() == text.split()
    words.nth(4).hover()
    expect(opened.locator("p.hint[role=status]")).to_contain_text(f"Without “not”: {row['label']}")


@of("language")
@pytest.mark.usefixtures("quiet")
def test_a_gap_is_inserted_and_filled(opened: Page) -> None:
    opened.get_by_label("Text", exact=True).fill("The film is ")
    opened.get_by_role("button", name="Insert a gap").click()
    expect(opened.get_by_label("Text", exact=True)).to_have_value("The film is [MASK]")
    opened.keyboard.press("Enter")
    expect(opened.locator("#best")).to_contain_text("The film is")
    assert len(opened.locator(".bars dt").all()) == 5


@of("translation")
def test_every_example_is_answered(opened: Page, complaints: list[str]) -> None:
    for text in EXAMPLES["translation"]:
        opened.get_by_role("button", name=text).first.click()
        expect(opened.get_by_label("Text", exact=True)).to_have_value(text)
        expect(opened.locator("#status")).to_be_empty()
        expect(opened.locator("#error")).to_be_empty()
    assert complaints == []


@pytest.mark.parametrize("opened", TASKS, indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("quiet")
def test_it_is_accessible_and_fits(opened: Page, scheme: str) -> None:
    opened.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    if opened.locator(WORDS).count():
        opened.locator(WORDS).first.hover()
    for width in (320, PHONE, TABLET, DESKTOP):  # 1280 pixels at 400 % are 320
        opened.set_viewport_size({"width": width, "height": 800})
        require_fit(opened, width)
    require_accessible(opened)


@pytest.mark.parametrize("opened", TASKS, indirect=True)
@pytest.mark.usefixtures("quiet")
def test_a_very_long_word_makes_no_page_wider(opened: Page) -> None:
    opened.set_viewport_size({"width": PHONE, "height": 800})
    ask(opened, f"https://example.org/{'a' * 300} Donaudampfschifffahrtsgesellschaftskapitänsmütze")
    require_fit(opened, PHONE)


@of("translation")
@pytest.mark.usefixtures("quiet")
def test_a_text_written_from_the_right_reads_from_the_right(opened: Page) -> None:
    ask(opened, "كلب أحمر ينام .")
    source = opened.locator(".tokens").nth(1)
    assert source.evaluate("(each) => getComputedStyle(each).direction") == "rtl"
    first, second = (source.locator("> span").nth(place).bounding_box() for place in (0, 1))
    assert first and second and first["x"] > second["x"]
    if opened.locator(WORDS).count():
        opened.locator(WORDS).first.hover()
        assert opened.locator("p.hint bdi").count() >= 2, "each word keeps its place in the line about it"


@of("translation")
def test_what_cannot_be_answered_is_said_in_a_line(opened: Page, complaints: list[str]) -> None:
    error = opened.locator("#error")
    ask(opened, "  ")
    expect(opened.locator("#best")).to_have_text("(nothing)")
    ask(opened, "x" * (5 << 20))
    expect(error).to_contain_text("has over 4,194,304 bytes: ask in parts")
    expect(opened.locator("#answer")).to_be_empty()
    assert len(complaints) == 1 and "413" in complaints[0]
    ask(opened, "<img src=x onerror=alert(1)> \u202e Hund")
    expect(error).to_be_empty()
    assert opened.locator("#answer img").count() == 0
    opened.route("**/invocations", lambda route: route.abort())
    ask(opened, "Ein Hund .")
    expect(error).to_have_text("The server does not answer: is it still running?")


def test_on_another_address_the_page_needs_the_printed_one(browser: Browser, servers: dict[str, Server]) -> None:
    root = servers["sentiment"].log.parent
    server = Server(root, "model", "--host", "0.0.0.0")
    try:
        (address,) = re.findall(r"^    (http://\S+)$", server.log.read_text(), re.MULTILINE)
        assert address.startswith(f"http://{socket.gethostname()}:{server.port}/#")
        page = browser.new_page()
        page.goto(server.address)
        expect(page.locator("#error")).to_contain_text("needs its token")
        page.goto(f"{server.address}/#{address.partition('#')[2]}")
        expect(page.locator("#best")).to_be_visible(timeout=60_000)
        assert page.locator("#examples button").count() == 2, "the long one is left out"
        page.close()
    finally:
        server.stop()


def test_one_command_leads_from_the_workflow_to_the_page(browser: Browser, workflow: Clone, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ("make", "serve", f"PORT={port}", "--old-file=.venv/.installed")
    server = start_server(command, f"{url}/ping", workflow.root, workflow.environment, tmp_path / "log")
    page = browser.new_page(viewport={"width": TABLET, "height": 900})
    try:
        page.goto(url)
        expect(page.locator("#title")).to_have_text("translation-de-en-sample, version 1")
        assert page.locator("#examples button").count() == 5
        page.locator("#examples button").nth(3).click()
        expect(page.locator("#best")).to_be_visible(timeout=60_000)
    finally:
        page.close()
        stop_server(server)
