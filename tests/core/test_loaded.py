"""What light users of the package really import."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.inference.converting import BUNDLES
from tests.kit import TASKS
from transformer.core.task import open_task

_HEAVY = {"mlflow", "sklearn", "datasets", "pandas", "matplotlib", "sacrebleu", "dvc", "spacy"}


def _modules(*lines: str) -> set[str]:
    """The modules that a Python process has imported after these lines."""
    code = "\n".join((*lines, "import json, sys", "print(json.dumps(sorted(sys.modules)))"))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("task", TASKS)
def test_training_loads_no_other_task_or_family_and_nothing_heavy(task: str) -> None:
    found = _modules(
        f"from transformer.core.task import *; open_task({task!r}).family.stage('train'); import stages.train"
    )
    assert not _HEAVY & found
    families = {open_task(other).family.name for other in TASKS} - {open_task(task).family.name}
    foreign = [f"transformer.tasks.{other}" for other in TASKS if other != task]
    foreign += [f"transformer.families.{name}." for name in families]
    assert not [name for name in found if name.startswith(tuple(foreign))]


def test_a_bundle_is_opened_by_its_family_alone() -> None:
    bundle = str(BUNDLES / "sentiment-transformer")
    found = _modules(f"import transformer; transformer.load({bundle!r}, 'cpu')")
    assert not _HEAVY & found
    assert not [name for name in found if name.startswith("transformer.families.seq2seq.")]


def test_help_loads_no_model_and_no_library() -> None:
    found = _modules("from transformer.cli import _parser; _parser()")
    assert not (_HEAVY | {"torch", "pydantic", "numpy"}) & found
