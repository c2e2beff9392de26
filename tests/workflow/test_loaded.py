"""What is really imported: by the stages, compared with dvc.yaml, and by light users of the package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.closure import OWN, closure
from tests.conftest import ROOT, make_clone
from tests.conversion.converting import BUNDLES
from transformer.core.declared import dependencies
from transformer.core.params import read_params
from transformer.core.task import open_task
from transformer.registry import STAGES, TASKS

_HEAVY = {"mlflow", "sklearn", "datasets", "pandas", "matplotlib", "sacrebleu", "dvc", "spacy"}


def _modules(*lines: str) -> set[str]:
    """The modules that a Python process has imported after these lines."""
    code = "\n".join((*lines, "import json, sys", "print(json.dumps(sorted(sys.modules)))"))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


_NOTING = """
import atexit, json, pathlib, sys

def note():
    words = sys.orig_argv
    if "-m" in words and words[words.index("-m") + 1].startswith("stages."):
        stage, root = words[words.index("-m") + 1].removeprefix("stages."), pathlib.Path.cwd()
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        own = sorted(str(pathlib.Path(file).relative_to(root)) for file in files if file and file.startswith(str(root)))
        pathlib.Path(__file__).with_name(f"{stage}@{words[-1]}.json").write_text(json.dumps(own))

atexit.register(note)
"""


@pytest.mark.stress  # needs its own run: elsewhere, processes are forked from one that has imported everything
def test_stages_load_what_they_declare(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_NOTING)
    clone = make_clone(tmp_path / "clone", PYTHONPATH=os.pathsep.join((str(site), str(tmp_path / "clone"))))
    clone.change({"runtime.tracking": False})
    clone.run("dvc", "repro")
    for stage in STAGES:
        for task in TASKS:
            loaded = json.loads((site / f"{stage}@{task}.json").read_text())
            own = {name for name in loaded if name.split("/")[0] in OWN and not name.endswith("/__init__.py")}
            declared = dependencies(stage, task, read_params(clone.params))
            unknown = {
                name for name in own if not any(name == path or name.startswith(f"{path}/") for path in declared)
            }
            assert not unknown, (stage, task)
            assert own <= closure(stage, task), (stage, task)
            assert f"stages/{stage}.py" in own


@pytest.mark.parametrize("task", TASKS)
def test_training_loads_no_other_task_or_family_and_nothing_heavy(task: str) -> None:
    found = _modules(
        f"from transformer.core.task import *; stage_code(open_task({task!r}), 'train'); import stages.train"
    )
    assert not _HEAVY & found
    others = {other for other in TASKS if other != task}
    assert not [name for name in found if name.startswith(tuple(f"transformer.tasks.{other}" for other in others))]
    families = {open_task(other).family for other in others}
    assert not [name for name in found if name.startswith(tuple(f"transformer.families.{name}." for name in families))]


def test_a_bundle_is_opened_by_its_family_alone() -> None:
    bundle = str(BUNDLES / "sentiment-transformer")
    found = _modules(f"import transformer; transformer.load({bundle!r}, 'cpu')")
    assert not _HEAVY & found
    assert not [name for name in found if name.startswith("transformer.families.seq2seq")]


def test_help_loads_no_model_and_no_library() -> None:
    found = _modules(
        "import sys; sys.argv = ['transformer', '--help']", "from transformer.cli import _parser; _parser()"
    )
    assert not (_HEAVY | {"torch", "pydantic", "numpy"}) & found
