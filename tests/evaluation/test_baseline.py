"""The predictions of another result: in a file, or at a commit that DVC can read."""

import json
from pathlib import Path
from typing import Any

import pytest
from dvc.repo import Repo

from tests.kit import git
from transformer.core.errors import UserError
from transformer.core.observer import Observer
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
    """Excel's byte order mark is no part of the first column."""
    content = "\ufeff" + HEADER + 'test\t"Ein Hund\t"a dog\ntest\tKatze\t\nvalidation\tb\tc\n'
    baseline = read("other.tsv", tmp_path, content)
    rows = baseline.of_split("test", {"source": ['"Ein  Hund', "Katze"]}, Observer())
    assert rows is not None
    assert [row["hypothesis"] for row in rows] == ['"a dog', ""]
    assert baseline.of_split("test_2017_flickr", {"source": ["x"]}, Observer()) is None
    alone = read("other.tsv", tmp_path, "split\thypothesis\ntest\ta\ntest\tb\n")
    assert len(alone.of_split("test", {"source": ["1", "2"]}, Observer()) or []) == 2, "sources are not needed"


def test_a_baseline_of_other_data_is_refused(tmp_path: Path) -> None:
    found = read("other.tsv", tmp_path, "split\tsource\treference\thypothesis\ntest\tKatze\tcat\tcat\n")
    for columns, message in (
        ({"source": ["Hund"]}, r"is for other data: the source of row 1 of test is not 'Hund'; name another"),
        ({"source": ["Katze", "Hund"]}, r"other.tsv has 1 predictions for test, not 2: name another"),
        ({"source": ["Katze"], "reference": ["chat"]}, r"the reference of row 1 of test is not 'chat'; name another"),
    ):
        with pytest.raises(UserError, match=message):
            found.of_split("test", columns, Observer())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"there is no .*other.tsv: put the predictions there"),
        (b"\xff", r"other.tsv cannot be read .*: name another"),
        (HEADER.encode(), r"other.tsv has no rows: name another"),
        (b"split\tsource\ttext\ntest\ta\tb\n", r"other.tsv has a row without column `hypothesis`: name another"),
        (HEADER.encode() + b"test\ta\n", r"other.tsv has a row without column `hypothesis`: name another"),
    ],
)
def test_a_file_without_predictions_is_one_line(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "other.tsv").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read("other.tsv", tmp_path)


def test_what_may_mean_another_result_tomorrow_is_refused() -> None:
    for name in ("1cb3c28", "my-best.2.tsv", None):
        assert ScoringParams(bootstrap_samples=10, baseline=name).baseline == name
    for name in ("main", "v1.0", "HEAD", "1cb3c2", "../other.tsv", "a/b.tsv", "", "1CB3C28"):
        with pytest.raises(ValueError, match="baseline must be a commit's id"):
            ScoringParams(bootstrap_samples=10, baseline=name)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project in a folder of its repository, whose first commit has predictions in DVC's cache; also its id."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "-q")
    root = top / "deep/project"
    path = root / PREDICTIONS
    path.parent.mkdir(parents=True)
    with Repo.init(str(root), subdir=True) as repo:
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


def test_a_commit_has_how_its_metrics_were_measured_and_the_answers_of_its_own_model(
    repository: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = repository
    monkeypatch.chdir(root)
    trained = {"path": "models/translation/trained", "md5": "old"}
    stages: dict[str, Any] = {f"{stage}@translation": {"deps": [], "outs": []} for stage in REQUIRED}
    stages["evaluate@translation"]["deps"] = [trained]

    def committed(md5: str) -> Baseline:
        stages["train@translation"]["outs"] = [trained | {"md5": md5}]
        (root / "dvc.lock").write_text(json.dumps({"stages": stages}))
        git(root, "add", "-A")
        git(root, "commit", "-qm", md5)
        return read(git(root, "rev-parse", "HEAD").strip(), root)

    signatures = {"bits": "masked", "perplexity": "masked|pieces"}
    evaluation = {"test": {"bits": 1.0}, "signatures": signatures}
    (root / PREDICTIONS).with_name("evaluation.json").write_text(json.dumps(evaluation))
    found = committed("old")
    assert found.rows["test"]
    own = {"bits": "masked", "perplexity": "masked|words", "accuracy": "masked"}
    assert found.measured_alike(own) == {"bits", "accuracy"}
    with pytest.raises(UserError, match=r"contains the predictions of another model than its own .*: name another"):
        committed("new")
