"""Results that were made again: the same, near enough, or not those of the commit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.comparing.test_compare import GOOD, git, write_result
from transformer.comparing.reproduction import TOLERANCES, verify
from transformer.errors import UserError

EVALUATION = "reports/sentiment/evaluation.json"


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """A repository whose workspace holds what its commit holds."""
    git(tmp_path, "init", "-q", "-b", "main")
    write_result(tmp_path, rate=1e-3, module="a" * 32, answers=GOOD)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "result")
    return tmp_path


def rewrite(root: Path, old: str, new: str) -> None:
    lock = root / "dvc.lock"
    text = lock.read_text()
    assert old in text
    lock.write_text(text.replace(old, new))


def accuracy(root: Path, change: float) -> None:
    figures = json.loads((root / EVALUATION).read_text())
    figures["test"]["accuracy"] += change
    (root / EVALUATION).write_text(json.dumps(figures))


def test_the_same_bytes_pass(committed: Path) -> None:
    assert [*verify(committed, "HEAD", exact=True)] == ["sentiment: every stage wrote the same bytes as at HEAD"]


def test_other_bytes_of_a_computing_stage_pass_with_metrics_that_are_near(committed: Path) -> None:
    rewrite(committed, "md5: train", "md5: other")
    accuracy(committed, -TOLERANCES["accuracy"] / 2)
    (line,) = verify(committed, "HEAD", exact=False)
    assert line == (
        "sentiment: train is the first stage with other bytes than at HEAD; the metrics differ by up to 50 % of their"
        " tolerance"
    )
    with pytest.raises(UserError, match=r"^train@sentiment: data/sentiment/train is not what HEAD has"):
        [*verify(committed, "HEAD", exact=True)]


def far(root: Path) -> None:
    rewrite(root, "md5: evaluate", "md5: other")
    accuracy(root, -2 * TOLERANCES["accuracy"])


def without_metric(root: Path) -> None:
    rewrite(root, "md5: evaluate", "md5: other")
    (root / EVALUATION).write_text('{"test": {"accuracy": 1.0}}')


def other_data(root: Path) -> None:
    rewrite(root, "md5: train", "md5: other")
    rewrite(root, "md5: tokenize", "md5: other")


def other_parameters(root: Path) -> None:
    rewrite(root, "learning_rate: 0.001", "learning_rate: 0.002")


def nothing(root: Path) -> None:
    (root / "dvc.lock").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (far, r"^evaluate@sentiment: accuracy on test is 0\.08 from that at HEAD, and 0\.04 is the most"),
        (without_metric, r"^evaluate@sentiment: f1 on test is inf from"),
        (other_data, r"^tokenize@sentiment: data/sentiment/tokenize is not what HEAD has in dvc\.lock"),
        (other_parameters, r"^train@sentiment: other parameters \(sentiment\.train\.learning_rate\)"),
        (nothing, r"^workspace holds no complete result"),
    ],
)
def test_what_is_another_result_names_its_first_stage(
    change: Callable[[Path], None], message: str, committed: Path
) -> None:
    change(committed)
    with pytest.raises(UserError, match=message) as caught:
        [*verify(committed, "HEAD", exact=False)]
    assert len(str(caught.value).splitlines()) == 1
