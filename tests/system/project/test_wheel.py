"""The wheel, outside the repository: installed with what it requires alone, it opens an exported model."""

import os
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.conftest import ROOT, Clone
from tests.project.test_locks import closure, project


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # setuptools writes beside what it builds
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in listed.split("\0"):
        if name.startswith("transformer/") or name in ("pyproject.toml", "README.md", "LICENSE"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run((*pip, "-w", folder, source), check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and links to what it requires, and nothing else of this one."""
    root = tmp_path_factory.mktemp("light") / "env"
    venv.create(root, with_pip=False, symlinks=True)
    packages = next((root / "lib").glob("python*/site-packages"))
    for name in closure(project()[""]):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            target = Path(str(found.locate_file(top)))
            if target.exists() and not (packages / top).exists():
                (packages / top).symlink_to(target)
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    subprocess.run(command, check=True, capture_output=True)
    return root / "bin" / "python"


def run(python: Path, folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run((python, *arguments), cwd=folder, env=environment, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


CONSOLE = "import sys; from transformer.cli import main; main()"


def test_an_exported_model_answers_as_in_the_repository(light: Path, workflow: Clone, tmp_path: Path) -> None:
    bundle = workflow.root / "models" / "translation" / "bundle"
    code = f"import transformer; print(*transformer.load({str(bundle)!r}).translate(['Ein Hund.']))"
    here = workflow.run("transformer", "translate", "Ein Hund.").stdout
    assert run(light, tmp_path, "-c", code).stdout == here
    assert run(light, tmp_path, "-c", CONSOLE, "translate", "-m", str(bundle), "Ein Hund.").stdout == here


def test_what_needs_more_says_so_in_one_line(light: Path, workflow: Clone, tmp_path: Path) -> None:
    bundle = str(workflow.root / "models" / "translation" / "bundle")
    done = run(light, tmp_path, "-c", CONSOLE, "attention", "-m", bundle, "Ein Hund.", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this command needs ")
    assert done.stderr.endswith("which is not installed: install the extra `workflow` too\n")
    assert run(light, tmp_path, "-c", CONSOLE, "--version").stdout == "transformer 0.1.0\n"


def test_the_wheel_has_the_templates_the_types_and_the_licence(wheel: Path, tmp_path: Path) -> None:
    names = subprocess.run((sys.executable, "-m", "zipfile", "-l", wheel), capture_output=True, text=True).stdout
    for path in (ROOT / "transformer" / "reporting" / "page_template").iterdir():
        assert f"transformer/reporting/page_template/{path.name}" in names
    assert "transformer/py.typed" in names
    assert "licenses/LICENSE" in names
    assert "tests/" not in names and "stages/" not in names
