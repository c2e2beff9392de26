"""Declarations that would give wrong results, or none, are refused in one line."""

import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.kit import ROOT, fresh_profile
from transformer.core.errors import UserError
from transformer.core.task import MOST_CLASSES, Task, open_task
from transformer.core.unchanged import WORKFLOW, InputSnapshot, refuse_other_repository
from transformer.families.classifier import FAMILY
from transformer.workflow.dvc import _recorded_md5, content_md5

NAMES = tuple(f"class {number}" for number in range(MOST_CLASSES))


def test_a_faulty_declaration_is_one_line() -> None:
    for classes, message in (
        (("a", "b", "a"), "at least two different names"),
        (("a",), "at least two different names"),
        ((*NAMES, "one more"), "129 classes, but at most 128"),
    ):
        with pytest.raises(UserError, match=message):
            Task(name="t", family=FAMILY, classes=classes)
    assert Task(name="t", family=FAMILY, classes=NAMES).classes == NAMES


def test_a_folder_that_dvc_takes_for_empty_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a data registry cloned beside dvc.yaml."""
    monkeypatch.chdir(tmp_path)
    for folder in map(Path, ("registry", "data/registry", "transformer")):
        (folder / ".dvc").mkdir(parents=True)
        (folder / "train.de").touch()
    with Repo.init(no_scm=True) as repo:
        empty, whole = (_recorded_md5(repo, tmp_path / folder) for folder in ("registry", "data/registry"))
        assert empty == f"{content_md5(b'[]')}.dir" != whole
    for fine in ("data/registry", str(tmp_path / "registry"), "../registry", "."):
        refuse_other_repository(Path(fine))
    WORKFLOW.write_text((ROOT / WORKFLOW).read_text())
    content, task = fresh_profile("smoke"), open_task("sentiment")
    given = (Path("params.yaml"), content, "download", task, task.family.stage("download").Params)
    for name, wrong in (("transformer", "transformer"), ("registry/de", "registry")):
        content["sentiment"]["download"]["path"] = name
        with pytest.raises(UserError, match=rf"^{wrong} has a `\.dvc`, .*: remove {wrong}/\.dvc, or move {wrong} out"):
            InputSnapshot(*given)
        shutil.rmtree(tmp_path / "transformer", ignore_errors=True)
