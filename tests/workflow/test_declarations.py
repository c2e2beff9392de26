"""dvc.yaml declares what the code reads and imports; the packages of the code depend on each other in one direction."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.repo import Repo
from dvc.stage import PipelineStage

from tests.conftest import ROOT
from tests.kit import STAGES, TASKS, git
from transformer.core.code import CODE, Tree, code_path
from transformer.core.errors import UserError
from transformer.core.params import read_params, section_path
from transformer.core.task import families, open_task
from transformer.core.unchanged import dependencies

STAGE_OF_TASK = pytest.mark.parametrize(("stage", "task"), [(stage, task) for stage in STAGES for task in TASKS])


@pytest.fixture(scope="module")
def known() -> Iterator[dict[str, PipelineStage]]:
    """DVC's own view of each stage."""
    with Repo(str(ROOT)) as repo:
        yield {stage.addressing: stage for stage in repo.index.stages}


@pytest.fixture(scope="module")
def declared(known: dict[str, PipelineStage]) -> dict[str, set[str]]:
    """The parameters of each stage."""
    stages = ((name, stage) for name, stage in known.items() if not name.startswith("code@"))
    return {name: {each for dep in stage.params for each in dep.params} for name, stage in stages}


def test_every_stage_of_every_task_is_declared(declared: dict[str, set[str]]) -> None:
    assert set(declared) == {f"{stage}@{task}" for stage in STAGES for task in TASKS}


def test_a_stage_depends_on_its_code_alone(known: dict[str, PipelineStage]) -> None:
    for name, stage in known.items():
        of_code = [dep.def_path for dep in stage.deps if dep.def_path.startswith(CODE) or "/code/" in dep.def_path]
        assert of_code == ([] if name.startswith("code@") else [code_path(*name.split("@"))])


def test_init_files_hold_docstrings_only() -> None:
    """No fingerprint lists them; but a family's, whose methods count where they are used, and `transformer.load`."""
    for path in (ROOT / "transformer").rglob("__init__.py"):
        if path.parent.name != "transformer" and path.parent.name not in families():
            assert len(ast.parse(path.read_text(encoding="utf-8")).body) == 1, path


def test_what_a_stage_uses_of_a_family_is_all_in_its_method() -> None:
    """A fingerprint has the methods that a stage uses, and nothing else of the file: helpers beside do not count."""
    serving = {"request_params", "requested", "details", "answer"}  # no stage's
    for family in families():
        tree = ast.parse((ROOT / f"transformer/families/{family}/__init__.py").read_text(encoding="utf-8"))
        helpers = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assigned = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
        helpers |= {target.id for target in assigned if isinstance(target, ast.Name)}
        (declared,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
        for method in (node for node in declared.body if isinstance(node, ast.FunctionDef)):
            used = {node.id for node in ast.walk(method) if isinstance(node, ast.Name)}
            assert method.name in serving or not used & helpers, f"{family}: {method.name}"


def test_code_outside_of_tasks_names_none_of_them() -> None:
    for path in (ROOT / "transformer").rglob("*.py"):
        room = path.relative_to(ROOT / "transformer").parts[0]
        if room in ("tasks", "families"):  # `translation` is also a translator's output
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Constant) and node.value in TASKS), f"{path}:{node.lineno}"


def test_a_families_no_task_and_no_other_family() -> None:
    for family in families():
        others = [f"transformer.families.{other}" for other in families() if other != family]
        for path in (ROOT / "transformer" / "families" / family).rglob("*.py"):
            found = Tree().module(path.relative_to(ROOT).as_posix()).imports
            assert not [name for name in found if name.startswith(("transformer.tasks", *others))], path


@STAGE_OF_TASK
def test_declared_parameters_are_those_that_the_stage_is_given(
    stage: str, task: str, declared: dict[str, set[str]]
) -> None:
    given = {section_path(task, name) for name in open_task(task).family.stage(stage).Params.model_fields}
    # DVC adds a leaf that dvc.yaml interpolates, such as a path, even if its section is declared.
    inside = tuple(f"{section}." for section in given)
    assert {name for name in declared[f"{stage}@{task}"] if not name.startswith(inside)} == given - {"runtime"}


def test_outputs_are_ignored_by_git_from_the_start(known: dict[str, PipelineStage]) -> None:
    """DVC would revert a .gitignore that it writes during a run if a later stage fails."""
    outputs = {out.def_path for stage in known.values() for out in stage.outs if out.use_cache}
    assert set(git(ROOT, "check-ignore", "--no-index", *outputs).split()) == outputs


def test_a_stage_knows_its_dependencies_as_dvc_does(
    known: dict[str, PipelineStage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    content = read_params(ROOT / "params.yaml")
    for name, found in ((name, stage) for name, stage in known.items() if not name.startswith("code@")):
        expected = sorted({dep.def_path for dep in found.deps} - {dep.def_path for dep in found.params})
        stage, task = name.split("@")
        assert sorted(dependencies(stage, task, content)) == expected, name


@pytest.mark.parametrize("text", ["stages: {download: {}}\nvars: [params.yaml]", f"a: {'9' * 5000}", "stages: 3"])
def test_a_workflow_of_another_structure_is_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dvc.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^dvc.yaml cannot be read \(\w+: .*\): fix it$"):
        dependencies("download", "translation", {})
