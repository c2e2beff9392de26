"""The bundle in other processes, and the check of some of its predictions."""

import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.inference.test_hostile import answer
from tests.kit import TASKS
from transformer.core import observer
from transformer.core.errors import UserError
from transformer.core.files import write_table
from transformer.core.observer import Observer, time_limit
from transformer.core.task import open_task
from transformer.inference import exporting
from transformer.inference.bundle import open_bundle
from transformer.inference.exporting import Model, Row, check_bundle
from transformer.inference.serving import Serving

FORKED = """
import os, signal, sys
import torch
from pathlib import Path
from transformer.inference.bundle import open_bundle
torch.set_num_threads(2)
signal.alarm(60)
model = open_bundle(Path(sys.argv[1]), "cpu")
ask = {"seq2seq": "translate", "classifier": "classify", "language": "score"}[model.family]
ask = getattr(model, ask)
texts = ["Ein Hund schl\u00e4ft auf der Wiese. " * 8] * 64
expected = ask(texts)
torch.randn(700, 700) @ torch.randn(700, 700)
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(0 if [str(each)[:20] for each in ask(texts)] == [str(each)[:20] for each in expected] else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("task", TASKS)
def test_a_model_is_pickled_and_answers_the_same(task: str, bundles: dict[str, Path]) -> None:
    model = open_bundle(bundles[task], "cpu")
    assert answer(pickle.loads(pickle.dumps(model))) == answer(model)


@pytest.mark.parametrize("task", [TASKS[0], *(task for task in TASKS[1:])])
def test_a_forked_child_answers(task: str, bundles: dict[str, Path]) -> None:
    command = [sys.executable, "-c", FORKED, str(bundles[task])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("task", TASKS)
def test_an_overdue_answer_is_given_up_and_the_next_one_is_given(task: str, bundles: dict[str, Path]) -> None:
    serving = Serving(bundles[task])
    expected = serving.table(["Ein Hund", "."], {})
    with pytest.raises(UserError, match=r"^the answer is overdue, and given up"):
        Serving(bundles[task], seconds=0.0).table(["Ein Hund", "."], {})
    assert serving.table(["Ein Hund", "."], {}) == expected


@pytest.mark.parametrize("task", TASKS)
def test_each_family_looks_at_the_time_while_it_works(
    task: str, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that nobody waits for would hold up all later ones."""
    clock = SimpleNamespace(monotonic=count().__next__)  # a second passes whenever it is looked at
    monkeypatch.setattr(observer, "time", clock)
    with pytest.raises(UserError, match="overdue"):
        Serving(bundles[task], seconds=2.5).table([f"Ein Hund {number}" for number in range(1000)], {})
    assert clock.monotonic() == 4


def test_work_is_overdue_between_batches() -> None:
    """Not only before it begins: the 504 of a server comes in the middle."""
    done = []
    with time_limit(0.2), pytest.raises(UserError, match="overdue"):
        for number in Observer().progress(range(1000), total=1000, what="work"):
            done.append(number)
            time.sleep(0.05)
    assert 0 < len(done) < 1000
    assert [*Observer().progress(range(3), total=3, what="work")] == [0, 1, 2]


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
