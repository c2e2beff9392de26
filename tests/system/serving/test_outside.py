"""A converted model answers in a fresh environment that has its engine and NumPy alone."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.inference.converting import Conversion
from tests.kit import clean_environment
from transformer.core.task import ENGINES

LIBRARIES = {"ctranslate2": ["ctranslate2", "numpy"], "onnx": ["onnxruntime", "numpy"]}


@pytest.fixture(scope="module", params=LIBRARIES)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """An engine's library, and the Python of a fresh environment that has it, in the versions of the lock."""
    folder = tmp_path_factory.mktemp(request.param) / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    lock = Path(__file__).parents[3] / "requirements.lock"
    command = [str(python), "-m", "pip", "install", "-q", "-c", str(lock), *LIBRARIES[request.param]]
    subprocess.run(command, check=True, env=clean_environment())
    return request.param, python


@pytest.mark.parametrize("name", ["translation-transformer", "sentiment-transformer"])
def test_the_example_answers(name: str, environment: tuple[str, Path], tmp_path: Path) -> None:
    library, python = environment
    conversion = Conversion(name, tmp_path)
    conversion.run(formats=[library])
    for engine in (engine for engine in ENGINES if engine.startswith(library)):
        folder = tmp_path / "elsewhere" / engine
        shutil.copytree(conversion.paths.converted / engine, folder)
        found = [
            subprocess.run([command, "example.py"], cwd=folder, check=True, capture_output=True, text=True).stdout
            for command in (str(python), sys.executable)
        ]
        assert found[0] == found[1] != ""
