"""MLflow's pages as a user sees them: the default workflow's store after three experiments.

SCREENSHOTS=docs/screenshots retakes the screenshots in docs/.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import Clone
from tests.kit import free_port, start_server, stop_server
from tests.system.tracking.runs import client_of, experiment

EXPERIMENTS = [f"sentiment.{change}" for change in ("train.learning_rate=5e-3", "train.epochs=4", "model.dropout=0.25")]
Show = Callable[[str, str], Page]


@pytest.fixture(scope="module")
def swept(workflow: Clone) -> Clone:
    """The shared clone, with three experiments in its store."""
    for change in EXPERIMENTS:
        workflow.run("dvc", "exp", "run", "--temp", "--set-param", change, "report@sentiment")
    return workflow


@pytest.fixture(scope="module")
def address(swept: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's UI, started like `make ui`."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command, log = ("make", "ui", f"PORT={port}", "--old-file=.venv/.installed"), tmp_path_factory.mktemp("ui") / "log"
    server = start_server(command, f"{url}/health", swept.root, swept.environment, log)
    yield url
    stop_server(server)


@pytest.fixture
def show(browser: Browser, address: str, tmp_path: Path) -> Iterator[Show]:
    """Opens a path of the UI; takes a screenshot when the test has passed."""
    page = browser.new_page(viewport={"width": 1500, "height": 800})
    taken: list[str] = []

    def open_path(path: str, name: str) -> Page:
        page.goto(f"{address}/#{path}")
        taken.append(name)
        return page

    yield open_path
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    # An artifact's page shows a path of this machine, so the screenshot is of the artifact alone.
    frames = page.locator("iframe")
    (frames.first if frames.count() else page).screenshot(path=folder / f"{taken[-1]}.png")
    page.close()


@pytest.fixture(scope="module")
def sentiment(swept: Clone) -> list[dict[str, str]]:
    """The runs of the task's results: name, run and experiment."""
    client = client_of(swept.root)
    own = experiment(client, "sentiment")
    found = [(run.info.run_id, run.info.run_name) for run in client.search_runs([own], "tags.key LIKE '%'")]
    assert len(found) == 1 + len(EXPERIMENTS)
    return [{"experiment": own, "run": run, "name": name} for run, name in found]


def test_the_run_table_names_what_was_run(show: Show, sentiment: list[dict[str, str]]) -> None:
    page = show(f"/experiments/{sentiment[0]['experiment']}/runs?viewStateShareKey=results", "mlflow_runs")
    expect(page.get_by_text("test.accuracy").first).to_be_visible(timeout=30_000)
    for row in sentiment:
        expect(page.get_by_text(row["name"][:14]).first).to_be_visible(timeout=30_000)


def test_two_runs_are_compared_by_parallel_coordinates(show: Show, sentiment: list[dict[str, str]]) -> None:
    chosen = json.dumps([row["run"] for row in sentiment[:3]], separators=(",", ":"))
    experiment = json.dumps([sentiment[0]["experiment"]])
    page = show(f"/compare-runs?runs={chosen}&experiments={experiment}", "mlflow_compare")
    expect(page.get_by_text("Parallel Coordinates Plot")).to_be_visible(timeout=30_000)
    expect(page.locator(".js-plotly-plot .parcoords").first).to_be_visible(timeout=30_000)
    for row in sentiment[:3]:
        expect(page.get_by_text(row["name"]).first).to_be_visible()
    expect(page.get_by_text("train.learning_rate", exact=True).first).to_be_attached()


def test_curves_of_runs_lie_in_one_chart(show: Show, sentiment: list[dict[str, str]]) -> None:
    page = show(f"/experiments/{sentiment[0]['experiment']}/runs?compareRunsMode=CHART", "mlflow_charts")
    page.get_by_placeholder("Search metric charts").fill("validation_loss")
    chart = page.locator(".js-plotly-plot", has=page.locator(".scatterlayer")).first
    expect(chart).to_be_visible(timeout=30_000)
    expect(chart.locator(".scatterlayer .trace").nth(1)).to_be_attached(timeout=30_000)


def test_the_report_is_shown_among_the_artifacts(show: Show, sentiment: list[dict[str, str]]) -> None:
    row = next(row for row in sentiment if row["name"].startswith("learning_rate=0.005 "))
    path = f"/experiments/{row['experiment']}/runs/{row['run']}/artifacts/reports/report.html"
    page = show(path, "mlflow_report")
    headline = page.frame_locator("iframe").first.locator(".headline")
    expect(headline).to_contain_text("Accuracy", timeout=30_000)
    expect(headline).to_contain_text("95 % interval")
