"""Two results in a real git repository, and the reported differences."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from ruamel.yaml import YAML

from transformer.core.errors import UserError
from transformer.core.files import write_table
from transformer.core.task import open_task
from transformer.families.classifier.evaluation.compare import scored
from transformer.report.build import in_common
from transformer.results.chain import STAGES, chains_in_lock
from transformer.results.differences import Differences, Score, differences
from transformer.results.find import find_results, results_before
from transformer.results.naming import row_name
from transformer.results.output import lines, tables
from transformer.results.workspace import content_md5

HEADER = ("split", "text", "label", "prediction", "probability")
PREDICTIONS = "reports/sentiment/predictions.tsv"
EVALUATION = "reports/sentiment/evaluation.json"
Answer = tuple[str, str, float]


def git(root: Path, *arguments: str) -> str:
    own = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return subprocess.run(["git", "-C", root, *own, *arguments], check=True, capture_output=True, text=True).stdout


def write_result(
    root: Path, *, rate: float, module: str, answers: Sequence[Answer], corpus: str = "download", linear: float = 0.8
) -> None:
    """A complete result of the task `sentiment` as DVC leaves it in the workspace."""
    rows = [("test", f"text {n}", *answer) for n, answer in enumerate(answers)]
    write_table(root / PREDICTIONS, HEADER, rows)
    right = sum(label == prediction for label, prediction, _ in answers) / len(answers)
    figures = {"test": {"accuracy": right, "f1": 0.5, "linear_accuracy": linear}, "signatures": {"name": "text"}}
    (root / EVALUATION).write_text(json.dumps(figures))
    outs = {stage: {f"data/sentiment/{stage}": stage} for stage in STAGES}
    outs["download"] = {"data/sentiment/corpus": corpus}
    outs["train"] = {"models/sentiment/trained": f"rate {rate}"}
    outs["evaluate"] = {path: content_md5((root / path).read_bytes()) for path in (EVALUATION, PREDICTIONS)}
    deps = {
        "train": {"transformer/nn/layers.py": module, **outs["build_vocab"]},
        "evaluate": outs["train"],
        "export": outs["evaluate"],
    }
    params = {"tokenize": {"sentiment.tokenize": {}}, "train": {"sentiment.train": {"learning_rate": rate}}}
    stages: dict[str, Any] = {
        f"{stage}@sentiment": {
            "cmd": "true",
            "deps": [{"path": path, "md5": md5} for path, md5 in deps.get(stage, {}).items()],
            "params": {"params.yaml": params[stage]} if stage in params else {},
            "outs": [{"path": path, "md5": md5} for path, md5 in outs[stage].items()],
        }
        for stage in STAGES
    }
    YAML().dump({"schema": "2.0", "stages": stages}, root / "dvc.lock")


GOOD: list[Answer] = [("positive", "positive", 0.9), ("negative", "negative", 0.8)] * 30
BAD: list[Answer] = [("positive", "negative", 0.7), ("negative", "negative", 0.8)] * 30


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit with one result, and a workspace with another."""
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    write_result(tmp_path, rate=1e-3, module="a" * 32, answers=BAD)
    (tmp_path / ".gitignore").write_text("predictions.tsv\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first | result")
    write_result(tmp_path, rate=5e-3, module="b" * 32, answers=GOOD)
    return tmp_path


def compared(root: Path, first: str, second: str = "workspace", samples: int = 200) -> Differences:
    return differences("sentiment", find_results(root, first), find_results(root, second), samples=samples)


def test_parameters_code_and_scores_differ_and_data_do_not(repository: Path) -> None:
    found = compared(repository, "main")
    assert found.params == [("sentiment.train.learning_rate", "0.001", "0.005")]
    assert found.code == ["transformer/nn/layers.py"]
    assert found.data == []
    scores = {score.metric: score for score in found.scores}
    assert (scores["accuracy"].first, scores["accuracy"].second) == (0.5, 1.0)
    assert found.without_answers == ["main"], "git ignores them, and DVC has none"
    assert scores["accuracy"].p is None


def test_answers_to_the_same_texts_give_intervals(repository: Path) -> None:
    """DVC finds a commit's predictions, which are in git here."""
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=repository, check=True)
    write_result(repository, rate=1e-3, module="a" * 32, answers=BAD)
    git(repository, "add", "-A")
    git(repository, "add", "-f", "reports/sentiment/predictions.tsv")
    git(repository, "commit", "-qm", "with predictions")
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD)
    score = next(score for score in compared(repository, "HEAD").scores if score.metric == "accuracy")
    assert (score.first, score.second) == (0.5, 1.0)
    assert score.low is not None and score.high is not None
    assert 0.3 < score.low < 0.5 < score.high < 0.7, "half of 60 predictions: the standard error is 0.065"
    assert score.p == pytest.approx(1 / 201)
    same = next(score for score in compared(repository, "workspace").scores if score.metric == "accuracy")
    assert (same.low, same.high, same.p) == (0.0, 0.0, 1.0), "a result is no better than itself"
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD[:-1])
    found = compared(repository, "HEAD")
    assert all(score.p is None and not score.comparable for score in found.scores), "different texts"
    shown = next(tables(found, "A", "B"))
    assert "test accuracy, test f1: no difference, as the results scored different texts" in shown.note
    assert {row[shown.header.index("difference")] for row in shown.rows} == {""}


@pytest.mark.parametrize(
    ("low", "high", "p", "noted"),
    [
        (0.001, 0.2, 0.06, True),
        (-0.2, -0.001, 0.05, True),
        (-0.001, 0.2, 0.04, True),
        (0.0, 0.2, 0.04, True),
        (0.001, 0.2, 0.04, False),
        (-0.001, 0.2, 0.06, False),
        (None, None, None, False),
        (0.001, 0.2, None, False),
    ],
)
def test_an_interval_and_a_p_value_that_disagree_are_noted(
    low: float | None, high: float | None, p: float | None, noted: bool
) -> None:
    score = Score("test", "accuracy", 0.5, 0.6, low, high, p)
    found = Differences(task="sentiment", params=[], data=[], code=[], scores=[score], without_answers=[])
    note = next(tables(found, "A", "B")).note
    assert note.startswith("test accuracy: the interval and p disagree about 0.05.") == noted
    assert ("more test rows or more seeds" in note) == noted


def test_results_without_a_common_metric_do_not_have_the_same_scores() -> None:
    """Such as a masked language model and one of replaced tokens."""
    objective = [("language.model.objective", "masked", "replaced")]
    found = Differences(task="language", params=objective, data=[], code=[], scores=[], without_answers=[])
    assert "Scores: none that both have" in lines(found, "a", "b", markdown=False)
    assert in_common([*tables(found, "a", "b")]) == " They have no score in common. The same in both: data, code."


@pytest.mark.parametrize(("how", "shown"), [("objective:masked|apart:7", True), ("objective:causal", False)])
def test_scores_that_were_measured_differently_have_no_difference(repository: Path, how: str, shown: bool) -> None:
    """Such as a language model's pseudo-log-likelihood and another one's log-likelihood."""
    for signature in ("objective:masked|apart:7|version:1", f"{how}|version:2"):
        git(repository, "commit", "-qam", "the one before")
        write_result(repository, rate=1e-3, module="a" * 32, answers=BAD)
        path, lock = repository / EVALUATION, repository / "dvc.lock"
        before = content_md5(path.read_bytes())
        path.write_text(json.dumps(json.loads(path.read_text()) | {"signatures": {"accuracy": signature}}))
        lock.write_text(lock.read_text().replace(before, content_md5(path.read_bytes())))
    found = {score.metric: score.comparable for score in compared(repository, "HEAD").scores}
    assert found == {"accuracy": shown, "f1": True}


def test_a_broken_lock_file_is_said(repository: Path) -> None:
    (repository / "dvc.lock").write_text("stages: {a: [")
    with pytest.raises(UserError, match=r"dvc.lock of workspace is broken .*: `git checkout dvc.lock`"):
        find_results(repository, "workspace")


def test_a_result_compared_with_itself_is_one_line(repository: Path) -> None:
    found = compared(repository, "workspace")
    assert [*lines(found, "workspace", "workspace", markdown=False)][1:] == [
        "The same parameters, data, code and scores."
    ]
    other = [*lines(compared(repository, "main"), "main", "workspace", markdown=False)]
    assert not any(line.startswith("The same") for line in other)


def test_a_corpuss_own_two_labels_have_an_interval_of_the_accuracy_alone() -> None:
    """Which of them is positive, and so what F1 means, is not in the predictions."""
    rows = [
        {"text": f"{n}", "label": ("ham", "spam")[n % 2], "prediction": "spam", "probability": "0.8"} for n in range(9)
    ]
    (found,) = scored(open_task("sentiment"), [rows], 50)
    assert [*found] == ["accuracy"] and found["accuracy"][0] == pytest.approx(4 / 9, abs=1e-6)
    three = [row | {"prediction": "eggs"} for row in rows]
    assert {*scored(open_task("sentiment"), [three], 50)[0]} == {"accuracy", "macro_f1"}


def test_two_of_three_labels_are_not_taken_for_two() -> None:
    """The split has no `neutral`: an answer may be `positive` with less than a half."""
    rows = [{"text": f"{n}", "label": "positive", "prediction": "positive", "probability": "0.4"} for n in range(9)]
    (found,) = scored(open_task("sentiment"), [rows], 50)
    assert found["accuracy"][0] == 1.0


def test_a_split_may_have_fewer_labels_than_the_corpus() -> None:
    """Of three labels or more, the prediction's probability may be below a half."""
    rows = [
        {"text": f"{n}", "label": ("ham", "spam")[n % 2], "prediction": "spam", "probability": "0.4"} for n in range(9)
    ]
    (found,) = scored(open_task("sentiment"), [rows], 50)
    assert found["accuracy"][0] == pytest.approx(4 / 9, abs=1e-6)
    (found,) = scored(open_task("sentiment"), [[row for row in rows if row["label"] == "spam"]], 50)
    assert found["accuracy"][0] == 1


@pytest.mark.parametrize("name", ["main", "HEAD", "row", "row name"])
def test_results_are_found_by_commit_and_row(repository: Path, name: str) -> None:
    commit = git(repository, "rev-parse", "HEAD").strip()
    (chain,) = chains_in_lock(git(repository, "show", "HEAD:dvc.lock").encode())
    names = {"row": chain.row_key(), "row name": row_name(chain)}
    assert find_results(repository, names.get(name, name)).commit == commit


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "not a commit, experiment or MLflow run"), ("-x", "not a commit"), ("", "not a commit")],
)
def test_what_cannot_be_found_is_said(repository: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_results(repository, name)


def test_an_experiment_that_waits_or_runs_is_said(repository: Path) -> None:
    """Waiting in the queue, or running in the workspace."""

    def dvc(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=repository, check=True, capture_output=True)

    def refused(name: str) -> str:
        with pytest.raises(UserError) as caught:
            find_results(repository, name)
        return str(caught.value)

    (repository / "dvc.lock").unlink()
    (repository / "dvc.yaml").write_text('stages: {wait: {cmd: "touch started && read line", params: [rate]}}\n')
    (repository / "params.yaml").write_text("rate: 1\n")
    (repository / ".gitignore").write_text("started\n")
    dvc("init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a stage")
    dvc("exp", "run", "--queue", "-n", "waiting", "-S", "rate=2")
    assert refused("waiting").startswith("experiment 'waiting' waits in the queue: `dvc queue start` runs it")
    command = [sys.executable, "-m", "dvc", "exp", "run", "-n", "here"]
    with subprocess.Popen(command, cwd=repository, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as running:
        deadline = time.monotonic() + 60
        while not (repository / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert refused("here") == "experiment 'here' is still running: compare it when its last stage has ended"
    assert running.returncode != 0
    assert "'here' is not a commit" in refused("here")


def test_a_failed_experiment_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.results.find._experiment_state", lambda root, name: "failed")
    with pytest.raises(UserError, match=r"experiment 'bad' failed, .* `dvc queue logs bad` says why"):
        find_results(repository, "bad")


def test_a_place_without_result_is_said(repository: Path) -> None:
    (repository / "dvc.lock").unlink()
    with pytest.raises(UserError, match="workspace has no complete result"):
        find_results(repository, "workspace")


def test_parameters_that_have_not_run_are_said(repository: Path) -> None:
    """As after a failed run: params.yaml is ahead of the result, which is what `compare` shows."""
    params = repository / "params.yaml"
    params.write_text("sentiment: {tokenize: {}, train: {learning_rate: 5e-3}, export: {alias: best}}\n")
    result = find_results(repository, "workspace")
    assert result.unrun("sentiment") is None, "YAML's 5e-3 is the lock's 0.005, and no stage declares the rest"
    params.write_text("sentiment: {tokenize: {}, train: {learning_rate: 2e-3, steps: 9}}\n")
    line = result.unrun("sentiment")
    assert line is not None
    assert "sentiment.train.learning_rate is 0.005 there and 0.002 in params.yaml; " in line
    assert "sentiment.train.steps is absent there and 9" in line
    assert find_results(repository, "main").unrun("sentiment") is None, "a commit's result is the commit's"


def test_answers_whose_labels_are_not_all_there_keep_what_evaluate_wrote(repository: Path) -> None:
    """`evaluate` knows labels that the split lacks: its macro F1 counts them as 0."""
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=repository, check=True)
    three: list[Answer] = [(label, label, 0.4) for label in ("a", "b", "c")] * 20
    for rate in (1e-3, 2e-3):
        write_result(repository, rate=rate, module="a" * 32, answers=three)
        path, lock = repository / EVALUATION, repository / "dvc.lock"
        before, content = content_md5(path.read_bytes()), json.loads(path.read_text())
        content["test"]["macro_f1"] = 0.75
        path.write_text(json.dumps(content))
        lock.write_text(lock.read_text().replace(before, content_md5(path.read_bytes())))
        git(repository, "add", "-A")
        git(repository, "add", "-f", PREDICTIONS)
        git(repository, "commit", "-qm", f"rate {rate}")
    scores = {score.metric: score for score in compared(repository, "HEAD~").scores}
    assert (scores["accuracy"].first, scores["accuracy"].p) == (1.0, 1.0)
    assert "macro_f1" not in scores or scores["macro_f1"].first == 0.75


def test_markdown_keeps_its_tables(repository: Path) -> None:
    text = "\n".join(lines(compared(repository, "HEAD"), "a|b", "workspace", markdown=True))
    assert "| split   | metric   | a\\|b" in text
    assert "**Data:** the same" in text
    assert "No intervals: DVC has no predictions of HEAD" in text


def test_scores_of_different_corpora_have_no_difference(repository: Path) -> None:
    def rows() -> list[str]:
        text = "\n".join(lines(compared(repository, "HEAD"), "HEAD", "workspace", markdown=False))
        return [line for line in text.splitlines() if line.startswith(("test", "The results are of"))]

    assert any("+0.5" in row for row in rows())
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD, corpus="another")
    found = rows()
    assert not any("+0.5" in row for row in found)
    assert found[0].startswith("The results are of different corpora: scores compare only where there is an interval.")


def test_a_commit_without_its_reports_is_not_the_result_before(repository: Path) -> None:
    """dvc.lock was committed, and evaluation.json was not: the report shows the change from the one before that."""
    git(repository, "commit", "-qm", "dvc.lock alone", "dvc.lock")
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD)
    own = find_results(repository, "workspace")
    before = results_before(repository, own.chains["sentiment"])
    assert before is not None
    assert before.commit == git(repository, "rev-parse", "HEAD~").strip()
    assert before.evaluation("sentiment")["test"]["accuracy"] == 0.5


def test_a_commit_of_parameters_that_never_ran_is_not_the_result_before(repository: Path) -> None:
    """As `dvc exp save` writes it: evaluation.json has the digest of other parameters than dvc.lock."""
    path, lock = repository / EVALUATION, repository / "dvc.lock"
    before = content_md5(path.read_bytes())
    path.write_text(path.read_text().replace('"name": "text"', '"parameters": "' + "0" * 64 + '"'))
    lock.write_text(lock.read_text().replace(before, content_md5(path.read_bytes())))
    git(repository, "commit", "-qam", "never run")
    write_result(repository, rate=7e-3, module="c" * 32, answers=GOOD)
    found = results_before(repository, find_results(repository, "workspace").chains["sentiment"])
    assert found is not None and found.commit == git(repository, "rev-parse", "HEAD~").strip()


def test_texts_of_any_length_are_compared(repository: Path) -> None:
    path, lock = repository / PREDICTIONS, repository / "dvc.lock"
    before = content_md5(path.read_bytes())
    path.write_text(path.read_text().replace("text 0", "long " * 40_000))
    lock.write_text(lock.read_text().replace(before, content_md5(path.read_bytes())))
    assert len(find_results(repository, "workspace").predictions("sentiment")["test"]) == 60


def test_scores_of_another_direction_do_not_compare(repository: Path) -> None:
    """Also where no predictions say that the texts are others."""
    lock = repository / "dvc.lock"
    lock.write_text(lock.read_text().replace("sentiment.tokenize: {}", "sentiment.tokenize: {source: de, target: en}"))
    assert not any(score.comparable for score in compared(repository, "HEAD").scores)


def test_other_linear_baselines_are_said(repository: Path) -> None:
    def note() -> str:
        return next(tables(compared(repository, "HEAD"), "HEAD", "workspace")).note

    assert "linear" not in note()
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD, linear=0.913)
    assert "The linear baselines differ (test 80.0 % and 91.3 %): leads over them do not compare." in note()
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD, linear=0.913, corpus="another")
    assert "linear" not in note(), "the corpora differ, which is said"
