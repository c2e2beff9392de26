"""`transformer accept` accepts only changes of code and versions, in a real DVC repository."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.tracking.conftest import run_in
from transformer.cli import main
from transformer.commands.accepting import accept
from transformer.core.errors import UserError

DVC_YAML = """\
stages:
  first:
    foreach: {a: {}, b: {}}
    do:
      cmd: python transformer/copy.py data/local.txt data/${key} reports/${key}.json
      deps:
        - data/local.txt
        - transformer/copy.py
        - transformer/folder
        - versions/first.txt
      params: ["${key}.first"]
      outs: ["data/${key}"]
      metrics: ["reports/${key}.json": {cache: false}]
  second:
    foreach: {a: {}, b: {}}
    do:
      cmd: python transformer/copy.py data/${key}/copy models/${key}
      deps: ["data/${key}", transformer/copy.py]
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with results."""
    root = tmp_path_factory.mktemp("made")
    for name, text in {
        "dvc.yaml": DVC_YAML,
        "params.yaml": PARAMS,
        "transformer/copy.py": COPY,
        "transformer/folder/module.py": "",
        "versions/first.txt": "numpy==1\n",
        "data/local.txt": "text",
        ".gitignore": "/models\n/data/a\n/data/b\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    run_in(root, "git", "init", "-q")
    run_in(root, "dvc", "init", "-q")
    run_in(root, "dvc", "repro")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "root"))


def comment(root: Path, name: str = "transformer/copy.py") -> None:
    with (root / name).open("a") as stream:
        stream.write("# nothing\n")


def stale(root: Path) -> set[str]:
    with Repo(str(root)) as repo, repo.lock:
        return {stage.name for stage in repo.index.stages if stage.status()}


def run_cache(root: Path) -> set[Path]:
    return set((root / ".dvc" / "cache" / "runs").rglob("*"))


def test_it_writes_what_dvc_would_but_no_entry_of_the_run_cache(root: Path, tmp_path: Path) -> None:
    comment(root)
    comment(root, "transformer/folder/module.py")
    (root / "versions/first.txt").write_text("numpy==2\n")
    before = run_cache(root)
    files = ["transformer/copy.py", "transformer/folder", "versions/first.txt"]
    other = Path(shutil.copytree(root, tmp_path / "other"))
    run_in(other, "dvc", "commit", "--force")
    assert accept(root) == {
        "first@a": files,
        "first@b": files,
        "second@a": ["transformer/copy.py"],
        "second@b": ["transformer/copy.py"],
    }
    assert (root / "dvc.lock").read_bytes() == (other / "dvc.lock").read_bytes()
    assert stale(root) == set()
    assert "Running stage" not in run_in(root, "dvc", "repro")
    assert run_cache(root) == before
    assert accept(root) == {}


def test_one_stage_alone(root: Path) -> None:
    comment(root)
    assert accept(root, "second@a") == {"second@a": ["transformer/copy.py"]}
    assert stale(root) == {"first@a", "first@b", "second@b"}


def test_other_stages_of_the_repository_are_left_alone(root: Path) -> None:
    """A file that DVC tracks, and a copy of the project in a folder, whose stages have the same names."""
    (root / "extra").mkdir()
    (root / "extra/x.txt").write_text("x")
    run_in(root, "dvc", "add", "-q", "extra/x.txt")
    names = ("dvc.yaml", "dvc.lock", "params.yaml", "transformer", "versions", "data", "models", "reports")
    for name in names:
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        (root / "old").mkdir(exist_ok=True)
        copy(root / name, root / "old" / name)
    comment(root, "old/transformer/copy.py")
    before = (root / "dvc.lock").read_bytes()
    assert accept(root) == {}
    assert (root / "dvc.lock").read_bytes() == before
    comment(root, "versions/first.txt")
    assert accept(root) == {"first@a": ["versions/first.txt"], "first@b": ["versions/first.txt"]}
    assert "Running stage" not in run_in(root, "dvc", "repro")


def test_a_dependency_that_the_lock_does_not_know_yet(root: Path) -> None:
    (root / "versions/second.txt").write_text("torch==1\n")
    text = DVC_YAML.replace('deps: ["data/${key}", ', 'deps: ["data/${key}", versions/second.txt, ')
    (root / "dvc.yaml").write_text(text)
    assert stale(root) == {"second@a", "second@b"}
    assert accept(root) == {"second@a": ["versions/second.txt"], "second@b": ["versions/second.txt"]}
    assert stale(root) == set()


def test_a_module_that_is_no_dependency_any_more(root: Path) -> None:
    comment(root)
    (root / "dvc.yaml").write_text(DVC_YAML.replace("        - transformer/folder\n", ""))
    shutil.rmtree(root / "transformer/folder")
    accept(root)
    assert stale(root) == set()
    assert "transformer/folder" not in (root / "dvc.lock").read_text()


def test_outputs_may_lie_in_the_cache_alone(root: Path) -> None:
    comment(root)
    shutil.rmtree(root / "models")
    shutil.rmtree(root / "data/a")
    accept(root)
    assert "Running stage" not in run_in(root, "dvc", "repro")
    assert stale(root) == set()
    assert (root / "models/a/copy").read_text() == "text"


def test_what_is_stale_by_itself_hinders_no_other_stage(root: Path) -> None:
    """A stage whose code did not change is ignored."""
    (root / "params.yaml").write_text(PARAMS.replace("second: {y: 1}", "second: {y: 2}"))
    comment(root, "versions/first.txt")
    assert set(accept(root)) == {"first@a", "first@b"}
    assert stale(root) == {"second@a", "second@b"}


def edit(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


REFUSED: dict[str, tuple[Callable[[Path], object], str | None, str]] = {
    "a parameter": (
        edit("params.yaml", PARAMS.replace("x: 1", "x: 2")),
        None,
        "first@a: a.first changed as well, and only code and versions can be accepted: run `dvc repro first@a`",
    ),
    "an input": (edit("data/local.txt", "other"), None, "first@a: data/local.txt changed as well"),
    "an input that is nowhere": (
        lambda root: run_in(root, "rm", "-r", "data/a", ".dvc/cache/files"),
        "second@a",
        "second@a: data/a is not here: get it with `dvc checkout` or `dvc pull` first",
    ),
    "an output": (
        lambda root: (root / "models/b/copy").write_text("other"),
        None,
        "second@b: models/b is not what dvc.lock says: run `dvc checkout` or `dvc repro`",
    ),
    "an output that lies in git": (edit("reports/b.json", "other"), None, "first@b: reports/b.json is not what"),
    "an output that is nowhere": (
        lambda root: (root / "reports/a.json").unlink(),
        None,
        "first@a: reports/a.json is not here: get it with `dvc checkout` or `dvc pull` first",
    ),
    "an output that is not in the cache either": (
        lambda root: run_in(root, "rm", "-r", "models", ".dvc/cache/files"),
        None,
        "second@a: models/a is not here",
    ),
    "a command": (
        edit("dvc.yaml", DVC_YAML.replace("copy models", "copy  models")),
        None,
        "second@a: its command changed as well",
    ),
    "a parameter that the lock does not know": (
        edit("dvc.yaml", DVC_YAML.replace('["${key}.second"]', '["${key}.second", "${key}.first"]')),
        None,
        "second@a: a.first changed as well",
    ),
    "code that is missing": (
        lambda root: (root / "versions/first.txt").unlink(),
        None,
        "first@a: versions/first.txt, a dependency in dvc.yaml, is missing: restore it first",
    ),
    "a parameter, named": (
        edit("params.yaml", PARAMS.replace("y: 1", "y: 2")),
        "second@b",
        "second@b: b.second changed as well",
    ),
    "an unknown stage": (
        lambda root: None,
        "third@a",
        "there is no stage third@a: choose one of first@a, first@b, second@a",
    ),
    "a stage that never ran": (
        edit("dvc.lock", "schema: '2.0'\nstages: {}\n"),
        "first@a",
        "first@a never ran, so there is no result to accept for: run `dvc repro first@a`",
    ),
    "no lock": (lambda root: (root / "dvc.lock").unlink(), None, "dvc.lock is missing, so there is no result"),
    "a conflict": (
        edit("dvc.lock", "<<<<<<< HEAD\nschema: '2.0'\n=======\n>>>>>>> other\n"),
        None,
        "dvc.lock has conflict markers: resolve the merge",
    ),
    "a broken lock": (edit("dvc.lock", "stages: ["), None, "DVC says: unable to read: 'dvc.lock'"),
    "a frozen stage": (
        edit("dvc.yaml", DVC_YAML.replace('      outs: ["models', '      frozen: true\n      outs: ["models')),
        "second@a",
        "second@a is frozen, and DVC does not look at its dependencies: `dvc unfreeze second@a` first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_in_one_line_and_nothing_is_written(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, address, said = REFUSED[name]
    comment(root)
    change(root)
    lock = root / "dvc.lock"
    before = lock.read_bytes() if lock.exists() else b""
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["transformer", "accept", *([address] if address else [])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert str(ended.value.code).startswith(f"error: {said}")
    assert "\n" not in str(ended.value.code)
    assert (lock.read_bytes() if lock.exists() else b"") == before


def test_a_frozen_stage_is_left_alone(root: Path) -> None:
    comment(root)
    text = DVC_YAML.replace('      outs: ["models', '      frozen: true\n      outs: ["models')
    (root / "dvc.yaml").write_text(text)
    assert set(accept(root)) == {"first@a", "first@b"}


def test_while_dvc_writes_the_lock_it_is_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comment(root)
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["transformer", "accept"])
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0)
    with Repo(str(root)) as repo, repo.lock, pytest.raises(SystemExit, match=r"^error: DVC says: .*lock[^\n]*$"):
        main()


def test_the_command_says_what_it_took_over(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["transformer", "accept", "second@a"])
    comment(root)
    main()
    main()
    assert capsys.readouterr().out.splitlines() == [
        "second@a: dvc.lock updated for transformer/copy.py",
        "nothing to accept: dvc.lock is up to date with the code and the versions",
    ]
    with pytest.raises(UserError):
        accept(root, "second")
