"""dvc.yaml declares just what the code reads and imports."""

from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.closure import OWN, closure
from tests.conftest import ROOT
from transformer.core.declared import dependencies
from transformer.core.params import read_params, section_path
from transformer.tasks import STAGES, TASKS, implementation

STAGE_OF_TASK = pytest.mark.parametrize(("stage", "task"), [(stage, task) for stage in STAGES for task in TASKS])


@pytest.fixture(scope="module")
def declared() -> dict[str, tuple[set[str], set[str]]]:
    """For each stage its code dependencies, folders resolved, and its parameters."""
    result = {}
    with Repo(str(ROOT)) as repo:
        for stage in repo.index.stages:
            paths = {dependency.def_path for dependency in stage.deps if dependency.def_path.split("/")[0] in OWN}
            params = {name for dependency in stage.params for name in dependency.params}
            result[stage.addressing] = ({file for path in paths for file in _files(path)}, params)
    return result


def _files(path: str) -> list[str]:
    if (ROOT / path).is_dir():
        return [file.relative_to(ROOT).as_posix() for file in (ROOT / path).rglob("*.py")]
    return [path]


def test_every_stage_of_every_task_is_declared(declared: dict[str, tuple[set[str], set[str]]]) -> None:
    assert set(declared) == {f"{stage}@{task}" for stage in STAGES for task in TASKS}


@STAGE_OF_TASK
def test_code_dependencies_are_the_import_closure(
    stage: str, task: str, declared: dict[str, tuple[set[str], set[str]]]
) -> None:
    assert declared[f"{stage}@{task}"][0] == closure(stage, task)


@STAGE_OF_TASK
def test_declared_parameters_are_those_that_the_stage_is_given(
    stage: str, task: str, declared: dict[str, tuple[set[str], set[str]]]
) -> None:
    given = {section_path(task, name) for name in implementation(task, stage).Params.model_fields}
    sections = {name for name in declared[f"{stage}@{task}"][1] if not _inside(name, given)}
    assert sections == given - {"runtime"}


def _inside(name: str, sections: set[str]) -> bool:
    """DVC adds a leaf that dvc.yaml interpolates, such as a path, though its section is declared."""
    return any(name.startswith(f"{section}.") for section in sections)


def test_outputs_are_ignored_by_git_from_the_start() -> None:
    ignored = {
        (path.parent / line.strip("/")).relative_to(ROOT).as_posix()
        for folder in ("data", "models", "reports")
        for path in (ROOT / folder).rglob(".gitignore")
        for line in path.read_text(encoding="utf-8").split()
    }
    with Repo(str(ROOT)) as repo:
        outputs = {out.def_path for stage in repo.index.stages for out in stage.outs if out.use_cache}
    assert outputs <= ignored


def test_the_training_core_runs_where_only_torch_and_its_light_friends_are() -> None:
    light = {"nn", "training", "decoding"}
    heavy = {
        "mlflow",
        "dvc",
        "spacy",
        "datasets",
        "pandas",
        "ruamel",
        "sklearn",
        "sacrebleu",
        "tqdm",
        "pyarrow",
        "matplotlib",
    }
    for task in TASKS:
        for path in closure("train", task):
            parts = Path(path).parts
            if parts[0] == "transformer" and len(parts) > 1 and parts[1] in light:
                assert not heavy & _top_level_imports(ROOT / path), path


def _top_level_imports(path: Path) -> set[str]:
    from tests.closure import _imports

    return {name.split(".")[0] for name in _imports(path)}


@STAGE_OF_TASK
def test_a_stage_knows_its_dependencies_as_dvc_does(stage: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with Repo(str(ROOT)) as repo:
        found = repo.stage.load_one("dvc.yaml", f"{stage}@{task}")
        expected = sorted({dep.def_path for dep in found.deps} - {dep.def_path for dep in found.params})
    assert sorted(dependencies(stage, task, read_params(ROOT / "params.yaml"))) == expected
