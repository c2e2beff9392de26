"""Profiles replace params.yaml, but never a person's edits."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from transformer.commands.check import check_params
from transformer.commands.profiles import use_profile
from transformer.core.errors import UserError
from transformer.core.params import read_params


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with our params.yaml and profiles, committed."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    for command in ("init -q", "add -A", "-c user.name=t -c user.email=t@example.org commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with local corpora and a vocab.txt."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("multi30k", "imdb", "bert-base-uncased"):
        (folder / name).mkdir()
    (folder / "bert-base-uncased" / "vocab.txt").touch()
    return folder


def test_a_profile_is_put_in_place_once(project: Path) -> None:
    assert use_profile(project, "seed", None) is True
    assert (project / "params.yaml").read_bytes() == (project / "profiles" / "seed.yaml").read_bytes()
    assert use_profile(project, "seed", None) is False


def test_one_profile_after_the_other_is_no_edit(project: Path, data: Path) -> None:
    use_profile(project, "seed", data)
    assert use_profile(project, "smoke", None) is True


def test_edits_that_are_not_committed_are_never_overwritten(project: Path) -> None:
    edited = re.sub(r"epochs: \d+", "epochs: 9", (project / "params.yaml").read_text())
    (project / "params.yaml").write_text(edited)
    with pytest.raises(UserError, match="edits that are not committed"):
        use_profile(project, "seed", None)
    assert (project / "params.yaml").read_text() == edited


def test_local_corpora_keep_comments_and_point_at_the_folders(project: Path, data: Path) -> None:
    use_profile(project, "seed", data)
    assert "# sample, files, hub" in (project / "params.yaml").read_text()
    content = read_params(project / "params.yaml")
    assert content["translation"]["download"]["source"] == "files"
    assert content["translation"]["download"]["path"] == str(data / "multi30k")
    assert content["sentiment"]["download"]["path"] == str(data / "imdb")
    assert content["sentiment"]["vocab"]["source"] == "path"
    assert content["translation"]["vocab"]["source"] == "trained"
    check_params(project / "params.yaml")


@pytest.mark.parametrize(
    ("gone", "task", "other"), [("imdb", "translation", "sentiment"), ("multi30k", "sentiment", "translation")]
)
def test_one_local_corpus_is_enough(gone: str, task: str, other: str, project: Path, data: Path) -> None:
    (data / gone).rmdir()
    use_profile(project, "seed", data)
    content = read_params(project / "params.yaml")
    assert (content[task]["download"]["source"], content[other]["download"]["source"]) == ("files", "hub")
    check_params(project / "params.yaml")


def test_make_runs_one_task_alone() -> None:
    command = ["make", "-n", "-o", ".venv/.installed", "repro", "TASK=translation"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "dvc repro report@translation\n" in done.stdout


def test_unknown_profiles_and_folders_are_one_clear_line(project: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no profile `nowhere`: choose one of"):
        use_profile(project, "nowhere", None)
    with pytest.raises(UserError, match="has none of the folders multi30k, translation, imdb"):
        use_profile(project, "seed", tmp_path / "profiles")
