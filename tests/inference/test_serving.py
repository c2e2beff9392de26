"""A served model looks at the time, and an exported one is checked and has a card."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit import TASKS
from transformer.core import observer
from transformer.core.errors import UserError
from transformer.core.files import write_table
from transformer.core.observer import Observer
from transformer.core.task import open_task
from transformer.inference import exporting
from transformer.inference.exporting import Model, Row, check_bundle
from transformer.inference.serving import Serving


@pytest.mark.parametrize("task", TASKS)
def test_an_overdue_answer_is_given_up_between_batches(
    task: str, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that nobody waits for would hold up all later ones."""
    clock = SimpleNamespace(monotonic=count().__next__)  # a second passes whenever it is looked at
    monkeypatch.setattr(observer, "time", clock)
    with pytest.raises(UserError, match="overdue"):
        Serving(bundles[task], seconds=2.5).table([f"Ein Hund {number}" for number in range(1000)], {})
    assert clock.monotonic() == 4
    monkeypatch.undo()
    assert Serving(bundles[task]).table(["Ein Hund"], {}), "the next one is answered"


def test_a_part_of_the_answers_is_asked_in_the_batches_of_all_before_it_is_called_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A near tie: one text's prediction changes unless all are in the same batch."""
    texts = [f"text {number}" for number in range(8)]
    write_table(tmp_path / "predictions.tsv", ["split", "text"], [("test", text) for text in texts])
    monkeypatch.setattr(exporting, "open_bundle", lambda bundle, device: None)
    model = Model(task=open_task("sentiment"), title="", use="", main_metric="accuracy", question="text")

    def check(limit: int | None, wrong: str) -> float:
        def answers(_: Any, rows: Sequence[Row]) -> list[tuple[str, bool]]:
            return [
                ("an answer", row["text"] != wrong and (number != 2 or len(rows) == 8))
                for number, row in enumerate(rows)
            ]

        path = tmp_path / "predictions.tsv"
        return check_bundle(tmp_path, model, path, answers, limit=limit, device="cpu", observer=Observer())["verified"]

    assert check(5, "none") == 5
    assert check(None, "none") == check(8, "none") == check(100, "none") == 8
    with pytest.raises(UserError, match="'an answer' for 'text 1'"):
        check(5, "text 1")
    assert check(5, "text 7") == 5


def test_a_name_with_a_bar_stays_in_its_cell_of_the_model_card() -> None:
    card = exporting.model_card("Model", "Use.", provenance={"labels": {"a|b": 3}}, params={}, figures={"note": "x\ny"})
    assert "| labels.a\\|b | 3 |" in card and "| note | x y |" in card
