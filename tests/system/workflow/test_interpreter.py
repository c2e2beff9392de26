"""The stages run with the project's libraries, whatever `python` is on PATH."""

import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import ROOT, Clone, make_clone

BARE = "/usr/bin:/bin"
DOWNLOAD = "download@translation"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    clone = make_clone(tmp_path_factory.mktemp("interpreter") / "clone")
    rows = {"train": 30, "validation": 5, "test": 5}
    clone.change({"translation.download.sample_rows": rows, "runtime.tracking": False})
    return clone


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment without libraries, like a system Python."""
    folder = tmp_path_factory.mktemp("empty") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin"


def test_an_environment_of_another_folder_is_made_again(tmp_path: Path) -> None:
    """Its commands have absolute paths: moved, they do not start; in a copy, they run the original's code."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    (tmp_path / ".venv" / ".installed").touch()
    for folder, stale in ((tmp_path, False), (ROOT, True)):
        activate.write_text(f'VIRTUAL_ENV="{folder.resolve()}/.venv"\n')
        assert subprocess.run(["make", "-q", ".venv/.installed"], cwd=tmp_path).returncode == stale


def run(clone: Clone, path: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "DVC_NO_ANALYTICS": "true", "HOME": str(clone.root.parent), "SHELL": "/bin/sh"}
    return subprocess.run(command, cwd=clone.root, env=environment, capture_output=True, text=True)


def forget(clone: Clone) -> None:
    """A clone in which nothing ran, and DVC has nothing to restore."""
    for name in ("data/translation/corpus", ".dvc/cache"):
        shutil.rmtree(clone.root / name, ignore_errors=True)
    (clone.root / "dvc.lock").unlink(missing_ok=True)


def dvc_in(folder: Path) -> Path:
    """An environment with all libraries of this one, and its own `dvc` command."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "all.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    dvc = folder / "bin" / "dvc"
    dvc.write_text(f"#!{folder}/bin/python\nimport sys\nfrom dvc.cli import main\nsys.exit(main())\n")
    dvc.chmod(0o755)
    return dvc


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system does not tell what runs")
def test_dvc_of_any_environment_lends_its_python(clone: Clone, empty: Path, tmp_path: Path) -> None:
    forget(clone)
    done = run(clone, f"{empty}:{BARE}", str(dvc_in(tmp_path / "elsewhere")), "repro", DOWNLOAD)
    assert done.returncode == 0, done.stderr
    assert (clone.root / "data/translation/corpus/provenance.json").is_file()


def test_by_hand_the_projects_environment_takes_over(clone: Clone, empty: Path) -> None:
    forget(clone)
    dvc_in(clone.root / ".venv")
    try:
        done = run(clone, f"{empty}:{BARE}", "python", "-m", "stages.download", "translation")
    finally:
        shutil.rmtree(clone.root / ".venv")
    assert done.returncode == 0, done.stderr
    assert (clone.root / "data/translation/corpus/provenance.json").is_file()


def test_without_any_it_is_one_line(clone: Clone, empty: Path) -> None:
    done = run(clone, f"{empty}:{BARE}", "python", "-m", "stages.download", "translation")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: {empty}/python has no pydantic, ruamel, tokenizers, torch, tqdm: activate the project's environment"
        " (`source .venv/bin/activate`) or use `make repro`; `dvc checkout` restores removed outputs"
    ]


def test_a_stage_as_a_file_is_one_line(tmp_path: Path) -> None:
    """Beside it, stages/tokenize.py would be taken for the standard library's module."""
    environment = {"PATH": BARE, "PYTHONPATH": str(ROOT)}
    command = (sys.executable, str(ROOT / "stages" / "train.py"), "translation")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "error: a stage runs as a module: `python -m stages.train translation`, in the project's folder\n"
    )
