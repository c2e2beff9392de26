"""Two results in a real git repository, and the reported differences."""

import json
from pathlib import Path

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.kit import git
from tests.workflow.comparing import BAD, GOOD, PREDICTIONS, Answer, write_result
from transformer.core.task import open_task
from transformer.families.classifier.report import ClassifierReporting
from transformer.workflow.compare import Differences, Score, differences, lines, tables
from transformer.workflow.results import find_results


def compared(root: Path, first: str, second: str = "workspace", samples: int = 200) -> Differences:
    one, two = (find_results(root, name).results["sentiment"] for name in (first, second))
    return differences(one, two, samples=samples)


def test_parameters_code_and_scores_differ_and_data_do_not(repository: Path) -> None:
    found = compared(repository, "main")
    assert found.params == [("sentiment.train.learning_rate", "0.001", "0.005")]
    assert found.code == ["transformer/nn/layers.py"]
    assert found.data == []
    scores = {score.metric: score for score in found.scores}
    assert (scores["accuracy"].first, scores["accuracy"].second) == (0.5, 1.0)
    assert found.without_answers == ["main"], "git ignores them, and DVC has none"
    assert scores["accuracy"].p is None


@pytest.mark.parametrize("folder", [".", "deep/project"])
def test_answers_to_the_same_texts_give_intervals(folder: str, repository: Path) -> None:
    """DVC finds a commit's predictions, which are in git here."""
    repository /= folder
    (repository / "reports/sentiment").mkdir(parents=True, exist_ok=True)
    Repo.init(str(repository), subdir=folder != ".").close()
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
    ("low", "p", "noted"), [(0.001, 0.06, True), (0.0, 0.04, True), (0.001, 0.0496, False), (0.001, None, False)]
)
def test_an_interval_and_a_p_value_that_disagree_are_noted(low: float, p: float | None, noted: bool) -> None:
    score = Score("test", "accuracy", 0.5, 0.6, low, 0.2, p)
    found = Differences(task="sentiment", params=[], data=[], code=[], scores=[score], without_answers=[])
    shown = next(tables(found, "A", "B"))
    assert shown.note.startswith("test accuracy: the interval and p disagree about 0.05.") == noted
    assert p != 0.0496 or shown.rows[0][-1] == "0.0496", "not rounded over the level"


@pytest.mark.parametrize(("how", "shown"), [("objective:masked|mask_stride:7", True), ("objective:causal", False)])
def test_scores_that_were_measured_differently_have_no_difference(repository: Path, how: str, shown: bool) -> None:
    """Such as a language model's pseudo-log-likelihood and another one's log-likelihood."""
    for signature in ("objective:masked|mask_stride:7|version:1", f"{how}|version:2"):
        git(repository, "commit", "-qam", "the one before")
        write_result(repository, rate=1e-3, module="a" * 32, answers=BAD, signatures={"accuracy": signature})
    found = {score.metric: score.comparable for score in compared(repository, "HEAD").scores}
    assert found == {"accuracy": shown, "f1": True}


def test_a_result_compared_with_itself_is_one_line(repository: Path) -> None:
    found = compared(repository, "workspace")
    assert [*lines(found, "one", "one", markdown=False)][1:] == ["The same parameters, data, code and scores."]
    assert not any(
        line.startswith("The same") for line in lines(compared(repository, "main"), "A", "B", markdown=False)
    )


@pytest.mark.parametrize(
    ("label", "other", "prediction", "probability", "metrics"),
    [
        # Which of the corpus's own two is positive is not in the predictions; nor are all labels of three or more.
        ("spam", "ham", "spam", "0.5", {"accuracy"}),
        ("spam", "ham", "spam", "0.4", {"accuracy"}),
        ("spam", "ham", "eggs", "0.4", {"accuracy", "macro_f1"}),
        ("positive", "negative", "positive", "0.5", {"accuracy", "f1", "roc_auc"}),
    ],
)
def test_answers_are_scored_by_the_labels_that_are_there(
    label: str, other: str, prediction: str, probability: str, metrics: set[str]
) -> None:
    own = {"prediction": prediction, "probability": probability}
    rows = [{"text": str(n), "label": (other, label)[n % 2], **own} for n in range(9)]
    (found,) = ClassifierReporting().scored(open_task("sentiment"), [rows], 50)
    assert {*found} == metrics
    assert found["accuracy"][0] == pytest.approx(4 / 9 if prediction == label else 0, abs=1e-6)


def test_answers_whose_labels_are_not_all_there_keep_what_evaluate_wrote(repository: Path) -> None:
    """`evaluate` knows labels that the split lacks: its macro F1 counts them as 0."""
    Repo.init(str(repository)).close()
    three: list[Answer] = [(label, label, 0.4) for label in ("a", "b", "c")] * 20
    for rate in (1e-3, 2e-3):
        write_result(repository, rate=rate, module="a" * 32, answers=three, figures={"macro_f1": 0.75})
        git(repository, "add", "-A")
        git(repository, "add", "-f", PREDICTIONS)
        git(repository, "commit", "-qm", f"rate {rate}")
    scores = {score.metric: score for score in compared(repository, "HEAD~").scores}
    assert (scores["accuracy"].first, scores["accuracy"].p) == (1.0, 1.0)
    assert scores["macro_f1"].first == 0.75


def test_markdown_keeps_its_tables(repository: Path) -> None:
    text = "\n".join(lines(compared(repository, "HEAD"), "a|b", "workspace", markdown=True))
    assert "| split   | metric   | a\\|b" in text
    assert "**Data:** the same" in text
    assert "No intervals: DVC has no predictions of HEAD" in text


def test_a_remote_that_cannot_be_reached_does_not_have_the_predictions(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client has errors of its own: here botocore's, of missing credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(repository / "none"))
    Repo.init(str(repository)).close()
    (repository / ".dvc" / "config").write_text(
        "[core]\n    remote = far\n['remote \"far\"']\n    url = s3://none/dvc\n    endpointurl = http://127.0.0.1:9\n"
    )
    pointer = {"outs": [{"path": Path(PREDICTIONS).name, "md5": "a" * 32, "hash": "md5"}]}
    (repository / f"{PREDICTIONS}.dvc").write_text(json.dumps(pointer))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "with a remote")
    assert find_results(repository, "HEAD").results["sentiment"].predictions() == {}


def test_scores_of_different_corpora_have_no_difference(repository: Path) -> None:
    def printed() -> str:
        return "\n".join(lines(compared(repository, "HEAD"), "HEAD", "workspace", markdown=False))

    assert "+0.5" in printed()
    write_result(repository, rate=1e-3, module="a" * 32, answers=GOOD, corpus="another")
    assert "+0.5" not in printed()
    assert "\nThe results are of different corpora: scores compare only where there is an interval." in printed()


def test_scores_of_another_direction_do_not_compare(repository: Path) -> None:
    """Also where no predictions say that the texts are others."""
    lock = repository / "dvc.lock"
    lock.write_text(lock.read_text().replace("sentiment.tokenize: {}", "sentiment.tokenize: {source: de, target: en}"))
    scores = compared(repository, "HEAD").scores
    assert scores and not any(score.comparable for score in scores)


def test_another_language_model_under_the_same_path_is_a_difference(repository: Path) -> None:
    trained, none = "models/language/trained", "data/local/none"

    def data(language: str, other: str) -> list[tuple[str, str, str]]:
        write_result(repository, rate=1e-3, module="a" * 32, answers=BAD, given={trained: language, other: "0"})
        found = compared(repository, "HEAD")
        assert not (found.params or found.code) and found.same == (not found.data)
        return found.data

    data("one", none)
    git(repository, "commit", "-qam", "with a language model")
    assert data("one", none) == [] and data("one", "data/local/other") == []
    assert data("another", none) == [(trained, "one", "another")]


def test_parameters_of_figures_are_parameters_too(repository: Path) -> None:
    """Else two results whose figures show other layers would have "the same parameters"."""
    yaml, lock = YAML(typ="safe"), repository / "dvc.lock"

    def figures(layers: str) -> Differences:
        write_result(repository, rate=1e-3, module="a" * 32, answers=BAD)
        whole = yaml.load(lock.read_text())
        params = {"params.yaml": {"sentiment.figures": {"layers": layers}}}
        outs = [{"path": "reports/sentiment/figures", "md5": layers}]
        stage = {"cmd": "true", "deps": whole["stages"]["train@sentiment"]["outs"], "params": params, "outs": outs}
        yaml.dump(whole | {"stages": whole["stages"] | {"figures@sentiment": stage}}, lock)
        return compared(repository, "HEAD")

    assert figures("last").params == [], "HEAD has no figures"
    git(repository, "commit", "-qam", "with figures")
    assert figures("last").same
    assert figures("all").params == [("sentiment.figures.layers", "last", "all")]


def test_a_terminal_of_80_columns_shows_which_differences_are_noise() -> None:
    scores = [
        Score("validation", "bleu_13a_lowercased", 35.012, 36.123, 0.12, 2.1, 0.02),
        Score("test_2017_flickr", "chrf", 60.1, 59.9, -0.75, 0.31, 0.4),
        Score("test", "accuracy", 0.5, 0.75),
    ]
    params = [("translation.download.path", "/a/folder/of/a/corpus/" * 3, "/another/" * 3)]
    found = Differences("translation", params, [], [], scores, [])
    printed = "\n".join(lines(found, "HEAD", "workspace", markdown=False)).splitlines()
    assert max(map(len, printed)) <= 80
    rows = {line.split()[1]: line.split()[-1] for line in printed if line.startswith(("validation ", "test"))}
    assert rows == {"bleu_13a_lowercased": "clear", "chrf": "noise", "accuracy": "+0.25"}
