"""Reproduced results: identical, close enough, different from the commit's, or not run at all."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.tracking.conftest import run_in
from transformer.core.digest import parameters_digest
from transformer.core.errors import UserError
from transformer.results.find import find_results, results_at
from transformer.results.reproduction import TOLERANCES, verify
from transformer.results.workspace import content_md5

STAGES = {
    "download": ("raw/corpus", "data/sentiment/corpus", "download"),
    "tokenize": ("data/sentiment/corpus", "data/sentiment/tokens", "tokenize"),
    "build_vocab": ("data/sentiment/tokens", "data/sentiment/vocab", "vocab"),
    "train": ("reports/language/weights", "models/sentiment/trained", "train"),
    "evaluate": ("reports/language/evaluation.json", "reports/sentiment/evaluation.json", "evaluate"),
    "export": ("reports/sentiment/evaluation.json", "models/sentiment/bundle", "export"),
}
"""What each stage copies, where to, and its section of the parameters."""
GIVEN = "data/local/mine"
"""The user's, which `train` reads as well; what language wrote is another one on another processor."""
CODE, FREE = "transformer/training.py", "corpora/vectors"
OTHERS = [GIVEN, CODE, FREE]
READS = {"train": "data/sentiment/vocab", "evaluate": "models/sentiment/trained", "export": "models/sentiment/trained"}
EVALUATION = "reports/sentiment/evaluation.json"


def make_result(root: Path) -> None:
    """A repository with a file-copying pipeline of the real one's shape, run and committed."""
    stages = {
        name: {
            "cmd": f"cp {source} {target}",
            "deps": [source, *([READS[name]] if name in READS else []), *(OTHERS if name == "train" else [])],
            "params": [f"sentiment.{section}"],
            **({"metrics": [{target: {"cache": False}}]} if target == EVALUATION else {"outs": [target]}),
        }
        for name, (source, target, section) in STAGES.items()
    }
    each = {name: {"foreach": ["sentiment"], "do": stage} for name, stage in stages.items()}
    (root / "dvc.yaml").write_text(json.dumps({"stages": each}))
    sections = "".join(f"  {section}: {{rate: 1}}\n" for _, _, section in STAGES.values())
    (root / "params.yaml").write_text(f"sentiment:\n{sections}")
    (root / "raw").mkdir()
    for name in OTHERS:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("mine")
    (root / "reports/language").mkdir(parents=True)
    (root / "raw/corpus").write_text("rows")
    (root / "reports/language/weights").write_text("weights")
    accuracy(root, 0)
    for _, target, _ in STAGES.values():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
    run_in(root, "git", "init", "-q", "-b", "main")
    run_in(root, "dvc", "init", "-q")
    run_in(root, "dvc", "repro", "-q")
    commit(root)


def commit(root: Path) -> None:
    run_in(root, "git", "add", "-A")
    run_in(root, "git", "commit", "-qm", "result")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_result(root)
    return root


@pytest.fixture
def committed(made: Path, tmp_path: Path) -> Path:
    """A repository whose workspace matches its commit."""
    return Path(shutil.copytree(made, tmp_path / "copy", symlinks=True))


def accuracy(root: Path, change: float) -> None:
    write_scores(root, {"accuracy": 0.5 + change, "f1": 0.5})


def write_scores(root: Path, scores: dict[str, float]) -> None:
    """What `evaluate` copies: the scores, and the digest of its parameters."""
    digest = parameters_digest({"sentiment.evaluate": {"rate": 1}})
    content = {"test": scores, "signatures": {"parameters": digest}}
    (root / "reports/language/evaluation.json").write_text(json.dumps(content))


def test_the_same_bytes_pass(committed: Path) -> None:
    assert [*verify(committed, "HEAD", exact=True)] == ["sentiment: every stage wrote the same bytes as at HEAD"]


def test_other_bytes_of_a_computing_stage_pass_with_metrics_that_are_near(committed: Path) -> None:
    (committed / "reports/language/weights").write_text("other weights")
    accuracy(committed, -TOLERANCES["accuracy"] / 2)
    run_in(committed, "dvc", "repro", "-q")
    (line,) = verify(committed, "HEAD", exact=False)
    assert line == (
        "sentiment: train is the first stage whose bytes differ from HEAD; the metrics differ by up to 50 % of their"
        " tolerance"
    )
    with pytest.raises(UserError, match=r"^train@sentiment: models/sentiment/trained is not what HEAD has"):
        [*verify(committed, "HEAD", exact=True)]


def renamed(root: Path, task: str) -> str:
    """dvc.lock as if sentiment had this name, with scores that nobody can read."""
    md5 = content_md5((root / EVALUATION).read_bytes())
    return (root / "dvc.lock").read_text().replace("sentiment", task).replace(md5, "a" * 32)


def test_a_task_that_the_commit_has_no_result_of_is_not_passed_over(committed: Path) -> None:
    """Of the other task, which the workspace has a result of, the commit's model is newer than its scores."""
    yaml = YAML(typ="safe")
    lock = committed / "dvc.lock"
    whole = yaml.load(lock.read_text())
    whole["stages"] |= yaml.load(renamed(committed, "other"))["stages"]
    trained = whole["stages"]["train@other"]["outs"][0]
    was, trained["md5"] = trained["md5"], "0" * 32
    yaml.dump(whole, lock)
    commit(committed)
    trained["md5"] = was
    yaml.dump(whole, lock)
    found = verify(committed, "HEAD", exact=False)
    assert next(found) == "sentiment: every stage wrote the same bytes as at HEAD"
    with pytest.raises(UserError, match="the model is newer than its scores"):
        next(found)


def test_the_other_tasks_are_verified_too(committed: Path) -> None:
    """The workspace has no result of the first one."""
    yaml = YAML(typ="safe")
    lock = committed / "dvc.lock"
    own = lock.read_text()
    whole = yaml.load(own)
    whole["stages"] |= yaml.load(renamed(committed, "another"))["stages"]
    yaml.dump(whole, lock)
    commit(committed)
    lock.write_text(own)
    found = verify(committed, "HEAD", exact=False)
    assert next(found) == "sentiment: every stage wrote the same bytes as at HEAD"
    with pytest.raises(UserError, match=r"^the workspace has no complete result of another: run `dvc repro`$"):
        next(found)


def test_a_commit_without_its_own_reports_is_no_result(committed: Path) -> None:
    """`verify` would else say that its scores were made again, which nobody can read there."""
    true = (committed / EVALUATION).read_text()
    (committed / EVALUATION).write_text(true.replace("0.5", "0.95"))
    commit(committed)
    (committed / EVALUATION).write_text(true)
    assert_refused(committed, r"^reports/sentiment/evaluation\.json at HEAD is not what dvc\.lock says there")
    run_in(committed, "git", "rm", "-q", "--cached", EVALUATION)
    run_in(committed, "git", "commit", "-qm", "dvc.lock alone")
    assert_refused(committed, r"^HEAD has no reports/sentiment/evaluation\.json: commit the reports with dvc\.lock")


def test_what_has_changed_since_the_result_was_made_is_said(committed: Path) -> None:
    """By `compare` and `summary`: code and data that were edited and not run."""
    assert results_at(committed, "workspace", None).unrun("sentiment") is None
    shutil.rmtree(committed / "models")
    shutil.rmtree(committed / "data")
    assert results_at(committed, "workspace", None).unrun("sentiment") is None, "as in a clone without `dvc pull`"
    (committed / "reports/language/weights").write_text("other weights")
    line = results_at(committed, "workspace", None).unrun("sentiment")
    assert line == (
        "sentiment: the workspace's result is older than what has changed since (train@sentiment:"
        " reports/language/weights); `dvc repro report@sentiment` makes the new one"
    )
    commit(committed)
    assert find_results(committed, "HEAD").unrun("sentiment") is None, "a commit's result is the commit's"


def test_metrics_without_a_tolerance_are_said(committed: Path) -> None:
    write_scores(committed, {"unheard_of": 1.0})
    run_in(committed, "dvc", "repro", "-q")
    commit(committed)
    (committed / "reports/language/weights").write_text("other weights")
    run_in(committed, "dvc", "repro", "-q")
    assert_refused(committed, "HEAD has no metric with a tolerance: verify with --exact")


def test_a_perplexity_of_15_may_differ_more_than_one_of_1(committed: Path) -> None:
    """By 0.35 on another CPU type, in the default language model, whose 95 % interval is 14.9 to 16.1."""
    score(committed, 15.5)
    commit(committed)
    (committed / "reports/language/weights").write_text("other weights")
    score(committed, 15.5 + 0.35)
    [*verify(committed, "HEAD", exact=False)]
    score(committed, 15.5 + 0.8)
    assert_refused(committed, "perplexity on test differs by 0.8 from HEAD; another CPU type explains at most 0.775")
    score(committed, 1.03)
    commit(committed)
    (committed / "reports/language/weights").write_text("weights of yet another processor")
    score(committed, 1.03 + 0.11)
    assert_refused(committed, "explains at most 0.1")


def score(root: Path, perplexity: float) -> None:
    write_scores(root, {"perplexity": perplexity})
    run_in(root, "dvc", "repro", "-q")


def far(root: Path) -> None:
    accuracy(root, -2 * TOLERANCES["accuracy"])


def without_metric(root: Path) -> None:
    write_scores(root, {"accuracy": 0.5})


def other_data(root: Path) -> None:
    (root / "reports/language/weights").write_text("other weights")
    (root / "raw/corpus").write_text("other rows")


def other_inputs(root: Path) -> None:
    (root / GIVEN).write_text("other vectors")
    (root / "reports/language/weights").write_text("other weights")


def other_code(root: Path) -> None:
    (root / CODE).write_text("a bug")
    (root / FREE).write_text("other vectors")
    (root / "reports/language/weights").write_text("other weights")


def other_parameters(root: Path) -> None:
    text = (root / "params.yaml").read_text()
    (root / "params.yaml").write_text(text.replace("train: {rate: 1}", "train: {rate: 2}"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (far, r"^evaluate@sentiment: accuracy on test differs by 0\.08 from HEAD; another .* explains at most 0\.04"),
        (without_metric, r"^evaluate@sentiment: f1 on test differs by inf from"),
        (other_data, r"^download@sentiment: data/sentiment/corpus is not what HEAD has in dvc\.lock"),
        (other_inputs, r"^sentiment: data/local/mine differs from HEAD: only results of the same code"),
        (other_code, r"^sentiment: transformer/training\.py, corpora/vectors differ from HEAD: only results of the"),
        (other_parameters, r"^train@sentiment: parameters differ \(sentiment\.train\.rate\)"),
    ],
)
def test_what_is_another_result_names_its_first_stage(
    change: Callable[[Path], None], message: str, committed: Path
) -> None:
    change(committed)
    run_in(committed, "dvc", "repro", "-q")
    assert_refused(committed, message)


def test_parameters_below_the_first_difference_count_too(committed: Path) -> None:
    """As on another processor, where every `train` writes other bytes."""
    (committed / "reports/language/weights").write_text("other weights")
    text = (committed / "params.yaml").read_text()
    (committed / "params.yaml").write_text(text.replace("export: {rate: 1}", "export: {rate: 2}"))
    run_in(committed, "dvc", "repro", "-q")
    assert_refused(committed, r"^export@sentiment: parameters differ \(sentiment\.export\.rate\)")


def test_a_broken_dvc_yaml_is_one_line(committed: Path) -> None:
    (committed / "dvc.yaml").write_text("stages: [")
    assert_refused(committed, r"^DVC cannot say whether the workspace is up to date: .*dvc\.yaml")


def nothing(root: Path) -> None:
    (root / "dvc.lock").unlink()


def no_models(root: Path) -> None:
    shutil.rmtree(root / "models")


def empty_evaluation(root: Path) -> None:
    (root / EVALUATION).write_text("{}")


def only_trained(root: Path) -> None:
    (root / "reports/language/weights").write_text("other weights")
    run_in(root, "dvc", "repro", "-q", "--single-item", "train@sentiment")


def conflict(root: Path) -> None:
    lock = root / "dvc.lock"
    lock.write_text(f"<<<<<<< HEAD\n{lock.read_text()}=======\n>>>>>>> other\n")


def fetched(root: Path) -> None:
    """As in a clone after `dvc pull`: the files exist, but no stage has run."""
    shutil.rmtree(root / ".dvc/cache/runs")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nothing, r"^the workspace has no complete result of sentiment: run `dvc repro`"),
        (no_models, r"^models/sentiment/trained is missing: run `dvc checkout`"),
        (empty_evaluation, r"^reports/sentiment/evaluation\.json is not what dvc\.lock says: run `git checkout -- "),
        (other_parameters, r"^train@sentiment is not up to date \(sentiment\.train\): run `dvc repro`"),
        (far, r"^evaluate@sentiment is not up to date \(reports/language/evaluation\.json\): run `dvc repro`"),
        (only_trained, r"the model is newer than its scores; run `dvc repro report@sentiment` \(evaluate, export\)"),
        (conflict, r"^dvc\.lock of workspace has conflict markers: resolve the merge"),
        (fetched, r"^sentiment: nothing to verify: download, .*, export did not run here"),
    ],
)
def test_a_workspace_that_holds_no_result_made_here_is_not_verified(
    change: Callable[[Path], None], message: str, committed: Path
) -> None:
    change(committed)
    assert_refused(committed, message)


def assert_refused(root: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        [*verify(root, "HEAD", exact=False)]
    assert len(str(caught.value).splitlines()) == 1
