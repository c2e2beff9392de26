"""A user's own corpora outside git, and in the temporary clones of DVC's experiments."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.data.cases import pairs, write
from tests.training.small import smoke
from transformer.core.errors import UserError
from transformer.core.unchanged import repository
from transformer.data.encoding import VocabParams, _given
from transformer.data.files import read_folder
from transformer.data.layouts import Columns

LOCAL = "data/local/translation"
COLUMNS = Columns({"de": "de", "en": "en"})


def test_a_corpus_that_the_clone_does_not_see_is_one_line_with_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    clone = repository / ".dvc" / "tmp" / "exps" / "clone"
    for root, names in ((repository, ("train.de", "train.en", "README.md")), (clone, ("README.md",))):
        (root / LOCAL).mkdir(parents=True)
        write(root / LOCAL, {name: f"{pairs(1)}\n".encode() for name in names})
    monkeypatch.chdir(repository)
    monkeypatch.setenv("DVC_ROOT", str(repository))
    assert list(read_folder(Path(LOCAL), columns=COLUMNS).splits) == ["train"]
    monkeypatch.chdir(clone)
    with pytest.raises(UserError, match=rf"only what git tracks, so name the absolute path {repository}/{LOCAL};"):
        read_folder(Path(LOCAL), columns=COLUMNS)
    with pytest.raises(UserError, match=r"put the corpus there, or change `path`$"):
        read_folder(Path("data/elsewhere"), columns=COLUMNS)
    assert list(read_folder(repository / LOCAL, columns=COLUMNS).splits) == ["train"]


def test_an_old_copy_beside_the_clones_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "repository" / ".dvc" / "tmp" / "exps" / "clone"
    for folder in (clone.parent / "corpus", clone):
        (folder / ".dvc").mkdir(parents=True)
        write(folder, {name: f"{pairs(1)}\n".encode() for name in ("train.de", "train.en")})
    monkeypatch.chdir(clone)
    assert read_folder(Path("../corpus"), columns=COLUMNS).splits
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "repository"))
    with pytest.raises(UserError, match=rf"leads out of .* name the absolute path {tmp_path}/corpus$"):
        read_folder(Path("../corpus"), columns=COLUMNS)
    with pytest.raises(UserError, match=r"leads out of .* name the absolute path"):
        _given(VocabParams(**smoke("sentiment", {})["sentiment"]["vocab"] | {"source": "path", "path": "../corpus"}))
    (clone / "..corpus").symlink_to(clone)
    assert read_folder(Path("..corpus"), columns=COLUMNS).splits


def test_what_outlasts_an_experiment_belongs_to_the_repository_of_its_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, own = tmp_path / "outer", tmp_path / "outer" / "own"
    clone = own / ".dvc" / "tmp" / "exps" / "clone"
    for root in (outer, own, clone):
        (root / ".dvc").mkdir(parents=True)
    (own / "data").mkdir()
    monkeypatch.setenv("DVC_ROOT", str(own))
    assert repository(clone) == repository(clone / "data") == repository(own / "data") == own
    monkeypatch.setenv("DVC_ROOT", str(outer))  # one of its stages runs this project's
    assert repository(own) == repository(own / "data") == own
    monkeypatch.chdir(own)
    with pytest.raises(UserError, match=r"folder \.\./corpus is missing"):
        read_folder(Path("../corpus"), columns=COLUMNS)
    monkeypatch.delenv("DVC_ROOT")
    assert repository(outer) == outer and repository(tmp_path) is None


@pytest.mark.parametrize("kind", ["translation", "sentiment", "vocabulary", "baseline/translation"])
def test_git_add_takes_no_corpus_of_ones_own(kind: str) -> None:
    names = ["train.de", "train.jsonl.gz", "plain_text/train.parquet", "README.md"]
    command = ["git", "check-ignore", "--no-index", *(f"data/local/{kind}/{name}" for name in names)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    assert found == command[3:-1]
