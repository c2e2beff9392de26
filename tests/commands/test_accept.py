"""`transformer accept` accepts only changes of code, in a real DVC repository."""

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.kit import git
from transformer.cli import main
from transformer.commands.accept import accept

DVC_YAML = """\
stages:
  first:
    foreach: {a: {}, b: {}}
    do:
      cmd: python copy.py data/local.txt data/${key} reports/${key}.json
      deps: [data/local.txt, "reports/${key}/code/first.json"]
      params: ["${key}.first"]
      outs: ["data/${key}"]
      metrics: ["reports/${key}.json": {cache: false}]
  second:
    foreach: {a: {}, b: {}}
    do:
      cmd: python copy.py data/${key}/copy models/${key}
      deps: ["data/${key}", "reports/${key}/code/second.json"]
      params: ["${key}.second"]
      outs: ["models/${key}"]
"""
COPY = """\
import sys
from pathlib import Path
source, *targets = map(Path, sys.argv[1:])
for target in targets:
    target = target if target.suffix else target / "copy"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
"""
PARAMS = "a: {first: {x: 1}, second: {y: 1}}\nb: {first: {x: 1}, second: {y: 1}}\n"
FILES = [f"reports/{task}/code/{stage}.json" for task in "ab" for stage in ("first", "second")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with results."""
    root = tmp_path_factory.mktemp("made")
    texts = {"dvc.yaml": DVC_YAML, "params.yaml": PARAMS, "copy.py": COPY, "data/local.txt": "text"}
    for name, text in (texts | dict.fromkeys(FILES, "{}") | {".gitignore": "/models\n/data/a\n/data/b\n"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    with Repo.init(str(root)) as repo, contextlib.chdir(root):
        assert len(repo.reproduce()) == 4
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = Path(shutil.copytree(made, tmp_path / "root"))
    monkeypatch.chdir(copy)
    return copy


def change(root: Path, *names: str) -> None:
    for name in names:
        (root / name).write_text('{"modules": {}}')


def stale(root: Path) -> set[str]:
    with Repo(str(root)) as repo, repo.lock:
        return {stage.name for stage in repo.index.stages if stage.status()}


def test_it_writes_what_dvc_would_but_no_entry_of_the_run_cache(root: Path, tmp_path: Path) -> None:
    change(root, *FILES)
    before = {*root.glob(".dvc/cache/runs/**/*")}
    other = Path(shutil.copytree(root, tmp_path / "other"))
    with Repo(str(other)) as repo, contextlib.chdir(other):
        repo.commit(force=True)
    assert accept(root) == ["first@a", "first@b", "second@a", "second@b"]
    assert (root / "dvc.lock").read_bytes() == (other / "dvc.lock").read_bytes()
    assert stale(root) == set()
    assert {*root.glob(".dvc/cache/runs/**/*")} == before
    assert accept(root) == []


def test_one_stage_alone_and_what_is_stale_by_itself_hinders_no_other(root: Path) -> None:
    (root / "params.yaml").write_text(PARAMS.replace("second: {y: 1}", "second: {y: 2}"))
    change(root, FILES[0], FILES[2])
    assert accept(root, "first@b") == ["first@b"]
    assert stale(root) == {"first@a", "second@a", "second@b"}
    assert accept(root) == ["first@a"]
    assert stale(root) == {"second@a", "second@b"}


def edit(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


REFUSED: dict[str, tuple[Callable[[Path], object], str | None, str]] = {
    "a parameter": (edit("params.yaml", PARAMS.replace("x: 1", "x: 2")), None, "first@a: a.first changed as well, and"),
    "an input": (edit("data/local.txt", "other"), None, "first@a: data/local.txt changed as well"),
    "an output": (edit("models/b/copy", "other"), None, "second@b: models/b changed as well"),
    "a missing output": (lambda root: shutil.rmtree(root / "models/b"), None, "second@b: models/b is not here"),
    "a command": (edit("dvc.yaml", DVC_YAML.replace("copy m", "copy  m")), None, "second@a: its command changed"),
    "an unknown stage": (lambda root: None, "third@a", "there is no stage third@a: choose one of first@a"),
    "a stage that never ran": (edit("dvc.lock", "schema: '2.0'\n"), "first@a", "first@a never ran, so there is no"),
    "no lock": (lambda root: (root / "dvc.lock").unlink(), None, "dvc.lock is missing, so there is no result"),
    "a conflict": (edit("dvc.lock", "<<<<<<< HEAD\n=======\n>>>>>>> other\n"), None, "dvc.lock has conflict markers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_in_one_line_and_nothing_is_written(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, address, said = REFUSED[name]
    change(root, *FILES)
    act(root)
    lock = root / "dvc.lock"
    before = lock.read_bytes() if lock.exists() else b""
    monkeypatch.setattr(sys, "argv", ["transformer", "accept", *([address] if address else [])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert str(ended.value.code).startswith(f"error: {said}")
    assert "\n" not in str(ended.value.code)
    assert (lock.read_bytes() if lock.exists() else b"") == before


def test_while_dvc_writes_the_lock_it_is_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["transformer", "accept"])
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0)
    with Repo(str(root)) as repo, repo.lock, pytest.raises(SystemExit, match=r"^error: DVC says: .*lock[^\n]*$"):
        main()
