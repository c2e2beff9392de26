"""Which commit a result was made on, and whether it used that commit's code."""

import json
from pathlib import Path

import pytest

from tests.kit import git, write_code_of
from transformer.core.errors import UserError
from transformer.results.chain import STAGES, Chain, Stage, chains_in_lock
from transformer.results.find import find_results
from transformer.results.git import blob, blobs, files, is_shallow, snapshots
from transformer.results.origin import current_origin, origin_of, uncommitted_code
from transformer.tracking import serving


def lock_of(rate: float) -> str:
    stages = {
        f"{stage}@sentiment": {
            "params": {"params.yaml": {"sentiment.train": {"rate": rate}}} if stage == "train" else {},
            "outs": [{"path": f"data/sentiment/{stage}", "md5": f"{stage} {rate}"}],
        }
        for stage in STAGES
    }
    return json.dumps({"schema": "2.0", "stages": stages})


@pytest.fixture(params=[".", "deep/project"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project with committed code, at the top of a git repository or in a subfolder of it."""
    root = tmp_path / str(request.param)
    (root / "transformer/nn").mkdir(parents=True)
    (root / "transformer/loop.py").write_text("loop = 1\n")
    for name in ("a", "b"):
        (root / f"transformer/nn/{name}.py").write_text(f"{name} = 1\n")
    git(tmp_path, "init", "-q", "-b", "main")
    write_code_of(root, "train", "sentiment")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "code")
    return root


def test_a_clone_without_all_of_the_history_is_known(tmp_path: Path, root: Path) -> None:
    """In it, the report cannot say that there was no result before."""
    git(root, "commit", "-q", "--allow-empty", "-m", "later")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}", "shallow")
    assert is_shallow(tmp_path / "shallow") and not is_shallow(root)


def chain_on(root: Path) -> Chain:
    """A chain whose training run used the workspace's code, as DVC records it."""
    code = write_code_of(root, "train", "sentiment")
    return Chain("sentiment", (Stage("train", {}, code | {"data/sentiment/tokens": "0" * 32}, {}),))


@pytest.mark.parametrize("file", ["transformer/loop.py", "transformer/nn/a.py", "transformer/nn/new.py"])
def test_code_that_was_not_committed_is_known_whatever_happens_to_it_later(root: Path, file: str) -> None:
    commit = git(root, "rev-parse", "HEAD").strip()
    clean = chain_on(root)
    (root / file).write_text("edited = 1\n")
    dirty = chain_on(root)
    git(root, "add", "-A")
    git(root, "stash")
    assert uncommitted_code(root, dirty, commit) and not uncommitted_code(root, clean, commit)
    git(root, "stash", "pop")
    git(root, "commit", "-qam", "later")
    assert uncommitted_code(root, dirty, commit) and not uncommitted_code(root, clean, commit)
    assert not uncommitted_code(root, dirty, None)
    assert not uncommitted_code(root, dirty, "0" * 40), "nothing is known about a missing commit"


def test_code_that_was_accepted_later_does_not_count(root: Path) -> None:
    """`transformer accept` puts it into dvc.lock; the commit that first had the result says what made it."""

    def lock(code: Chain) -> str:
        content = json.loads(lock_of(1.0))
        deps = [{"path": path, "md5": md5} for path, md5 in code.code.items()]
        content["stages"]["train@sentiment"]["deps"] = deps
        return json.dumps(content)

    made_on = git(root, "rev-parse", "HEAD").strip()
    (root / "dvc.lock").write_text(lock(chain_on(root)))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "result")
    (root / "transformer/loop.py").write_text("loop = 1 + 0\n")
    (root / "dvc.lock").write_text(lock(chain_on(root)))
    git(root, "commit", "-qam", "accepted")
    (accepted,) = chains_in_lock((root / "dvc.lock").read_text())
    assert accepted.code != next(iter(chains_in_lock(blob(root, "HEAD~", "dvc.lock")))).code
    assert not uncommitted_code(root, accepted, made_on)


def test_commits_of_the_same_second_are_in_their_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a rebase."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", "2026-01-01T00:00:00")
    for number in range(8):
        (root / "dvc.lock").write_text(lock_of(float(number)))
        git(root, "add", "-A")
        git(root, "commit", "-qm", f"{number}")
    assert [snapshot.lock for snapshot in snapshots(root)] == [lock_of(float(n)).encode() for n in range(8)]


def test_a_project_in_a_subfolder_finds_what_its_commits_hold(root: Path) -> None:
    (root / "dvc.lock").write_text(lock_of(1.0))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "result")
    result = git(root, "rev-parse", "HEAD").strip()
    git(root, "commit", "-qm", "later", "--allow-empty")
    assert blob(root, "HEAD", "transformer/loop.py") == b"loop = 1\n"
    assert sorted(files(root, "HEAD", "transformer/nn")) == ["a.py", "b.py"]
    assert blobs(root, "HEAD", ["transformer/nn/b.py", "none", "dvc.lock"])[:2] == [b"b = 1\n", None]
    assert [snapshot.commit for snapshot in snapshots(root)] == [result]
    (chain,) = find_results(root, "HEAD").chains.values()
    assert origin_of(root, chain).commit == git(root, "rev-parse", f"{result}~").strip()


def experiment(root: Path, name: str, rate: float) -> str:
    """A DVC experiment as DVC stores it in git: a ref that names its baseline."""
    baseline = git(root, "rev-parse", "HEAD").strip()
    (root / "dvc.lock").write_text(lock_of(rate))
    git(root, "add", "-A")
    git(root, "commit", "-qm", name)
    commit = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-ref", f"refs/exps/{baseline[:2]}/{baseline[2:]}/{name}", commit)
    git(root, "reset", "-q", "--hard", baseline)
    return commit


def test_of_two_experiments_with_one_name_that_on_this_commit_is_meant(root: Path) -> None:
    older = experiment(root, "wide", 1.0)
    git(root, "commit", "-qm", "a new baseline", "--allow-empty")
    newer = experiment(root, "wide", 2.0)
    assert find_results(root, "wide").commit == newer
    git(root, "checkout", "-q", "HEAD~")
    assert find_results(root, "wide").commit == older
    git(root, "checkout", "-q", "--orphan", "elsewhere")
    git(root, "commit", "-qm", "elsewhere", "--allow-empty")
    with pytest.raises(UserError, match=r"^2 experiments are named 'wide': choose one by its commit \("):
        find_results(root, "wide")
    assert find_results(root, older[:10]).commit == older


@pytest.mark.parametrize("name", ["workspace", "HEAD"])
def test_conflict_markers_are_named(root: Path, name: str) -> None:
    lock = lock_of(1.0)
    (root / "dvc.lock").write_text(f"<<<<<<< HEAD\n{lock}\n=======\n{lock}\n>>>>>>> wide\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "merged in haste")
    with pytest.raises(UserError, match=rf"^dvc\.lock of {name} has conflict markers: resolve the merge"):
        find_results(root, name)
    with pytest.raises(UserError, match=r"^dvc\.lock has conflict markers: resolve the merge"):
        serving._own(root, "translation")


def test_a_repository_that_git_refuses_to_read_is_not_one_without_commits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of another user, mounted into a container."""
    commit = git(root, "rev-parse", "HEAD").strip()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for read in (current_origin, lambda root: [*snapshots(root)], lambda root: blobs(root, commit, ["dvc.lock"])):
        with pytest.raises(UserError, match=r"git cannot read .*dubious ownership.* git config --global --add safe"):
            read(root)


def test_no_repository_and_one_without_commits_have_no_commit(tmp_path: Path) -> None:
    assert (current_origin(tmp_path).commit, [*snapshots(tmp_path)]) == (None, [])
    git(tmp_path, "init", "-q")
    assert (current_origin(tmp_path).commit, [*snapshots(tmp_path)]) == (None, [])
    assert blob(tmp_path, "HEAD", "dvc.lock") == b"" and blobs(tmp_path, "HEAD", ["dvc.lock"]) == [None]
