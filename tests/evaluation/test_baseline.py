"""The predictions of another result: in a file, or at a commit that DVC can read."""

import json
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.kit import git
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.validation import validate
from transformer.evaluation.baseline import Baseline, ScoringParams
from transformer.workflow.pipeline import REQUIRED
from transformer.workflow.results import read_committed

PREDICTIONS = Path("reports/translation/predictions.tsv")
HEADER = "split\tsource\thypothesis\n"


def read(name: str, folder: Path, content: str | None = None) -> Baseline:
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    return Baseline.read(name, folder, PREDICTIONS, columns=("hypothesis",), committed=read_committed)


def test_rows_come_by_split_and_quotes_are_text(tmp_path: Path) -> None:
    content = HEADER + 'test\t"Ein Hund\t"a dog\ntest\tKatze\t\nvalidation\tb\tc\n'
    baseline = read("other.tsv", tmp_path, content)
    rows = baseline.of_split("test", {"source": ['"Ein  Hund', "Katze"]}, Observer())
    assert rows is not None
    assert [row["hypothesis"] for row in rows] == ['"a dog', ""]
    assert baseline.of_split("test_2017_flickr", {"source": ["x"]}, Observer()) is None


def test_a_table_of_hypotheses_alone_needs_no_sources(tmp_path: Path) -> None:
    baseline = read("other.tsv", tmp_path, "split\thypothesis\ntest\ta\ntest\tb\n")
    assert len(baseline.of_split("test", {"source": ["1", "2"]}, Observer()) or []) == 2


def test_a_baseline_of_other_data_is_refused(tmp_path: Path) -> None:
    baseline = read("other.tsv", tmp_path, HEADER + "test\tKatze\tcat\n")
    with pytest.raises(
        UserError, match=r"other.tsv is for other data: the source of row 1 of test is not 'Hund'; name another"
    ):
        baseline.of_split("test", {"source": ["Hund"]}, Observer())
    with pytest.raises(UserError, match=r"other.tsv has 1 predictions for test, not 2: name another"):
        baseline.of_split("test", {"source": ["Katze", "Hund"]}, Observer())
    content = "split\tsource\treference\thypothesis\ntest\tKatze\tcat\tcat\n"
    both = read("both.tsv", tmp_path, content)
    with pytest.raises(UserError, match=r"the reference of row 1 of test is not 'chat'; name another"):
        both.of_split("test", {"source": ["Katze"], "reference": ["chat"]}, Observer())


@pytest.mark.parametrize("content", [HEADER.replace("hypothesis", "text") + "test\ta\tb\n", HEADER + "test\ta\n"])
def test_a_table_without_the_column_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UserError, match=r"other.tsv has a row without column `hypothesis`: name another"):
        read("other.tsv", tmp_path, content)


@pytest.mark.parametrize("content", ["", HEADER])
def test_a_table_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UserError, match=r"other.tsv has no rows: name another"):
        read("other.tsv", tmp_path, content)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no .*other.tsv: put the predictions there"):
        read("other.tsv", tmp_path)
    (tmp_path / "other.tsv").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"other.tsv cannot be read .*: name another"):
        read("other.tsv", tmp_path)


@pytest.mark.parametrize("name", ["main", "v1.0", "HEAD", "1cb3c2", "../other.tsv", "a/b.tsv", "", "1CB3C28"])
def test_what_may_mean_another_result_tomorrow_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"`translation.baseline`: baseline must be a commit's id"):
        scoring(name)
    assert scoring("1cb3c28").baseline == "1cb3c28"
    assert scoring("my-best.2.tsv").baseline == "my-best.2.tsv"
    assert scoring(None).baseline is None


def scoring(baseline: str | None) -> ScoringParams:
    values = {"bootstrap_samples": 10, "baseline": baseline}
    return validate(ScoringParams, values, where="params.yaml", prefix="translation")


@pytest.fixture(scope="module", params=[".", "deep/project"])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project whose first commit has predictions in DVC's cache; also that commit's id."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "-q")
    root = top / request.param
    path = root / PREDICTIONS
    path.parent.mkdir(parents=True)
    with Repo.init(str(root), subdir=root != top) as repo:
        for number in (1, 2):
            path.unlink(missing_ok=True)
            path.with_name("evaluation.json").write_text('{"signatures": {}}')
            path.write_text(HEADER + f"test\tHund\tdog {number}\n", encoding="utf-8")
            repo.add(str(path))
            git(root, "add", "-A")
            git(root, "commit", "-qm", str(number))
    return root, git(root, "rev-parse", "HEAD~1").strip()


def test_a_commit_means_what_it_held(repository: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    root, commit = repository
    monkeypatch.chdir(root)
    for name in (commit, commit[:7]):
        rows = read(name, root).of_split("test", {"source": ["Hund"]}, Observer())
        assert rows is not None
        assert [row["hypothesis"] for row in rows] == ["dog 1"]
    with pytest.raises(UserError, match=r"predictions.tsv of commit 0123456789 is not available .*`dvc fetch` it"):
        read("0123456789", root)
    with pytest.raises(UserError, match=rf"nowhere.tsv of commit {commit} is not available"):
        Baseline.read(commit, root, Path("nowhere.tsv"), columns=(), committed=read_committed)


def test_a_commit_says_how_its_metrics_were_measured(
    repository: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = repository
    monkeypatch.chdir(root)
    own = {"bits": "masked", "perplexity": "masked|words", "accuracy": "masked"}
    (root / PREDICTIONS).with_name("evaluation.json").write_text(
        json.dumps({"test": {"bits": 1.0}, "signatures": {"bits": "masked", "perplexity": "masked|pieces"}})
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "evaluation")
    assert read(git(root, "rev-parse", "HEAD").strip(), root).measured_alike(own) == {"bits", "accuracy"}


def test_excels_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    assert read("other.tsv", tmp_path, "\ufeff" + HEADER + "test\ta\tb\n").rows.keys() == {"test"}


def test_a_commit_whose_model_is_newer_than_its_answers_is_refused(
    repository: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = repository
    stages = {
        f"{stage}@translation": {
            "deps": [{"path": "models/translation/trained", "md5": "old"}] if stage == "evaluate" else [],
            "outs": [{"path": "models/translation/trained", "md5": "old"}] if stage == "train" else [],
        }
        for stage in REQUIRED
    }

    def committed() -> str:
        (root / "dvc.lock").write_text(json.dumps({"stages": stages}))
        git(root, "add", "dvc.lock")
        git(root, "commit", "-qm", "lock")
        return git(root, "rev-parse", "HEAD").strip()

    monkeypatch.chdir(root)
    assert read(committed(), root).rows["test"]
    stages["train@translation"]["outs"][0]["md5"] = "new"
    with pytest.raises(UserError, match=r"contains the predictions of another model than its own .*: name another"):
        read(committed(), root)
