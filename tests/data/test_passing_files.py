"""What editors, offices and desktops leave beside a corpus, and folders that hold more than a corpus."""

import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.data.cases import json_lines, reviews, write
from tests.kit import ROOT
from transformer.commands.check import check_params
from transformer.core.errors import UserError
from transformer.core.params import read_params
from transformer.core.task import open_task
from transformer.core.unchanged import InputSnapshot, refuse_around_project
from transformer.data.files import read_folder
from transformer.data.layouts import Columns, text_extensions
from transformer.families.classifier.download import LabelledDownload

LEFT = [
    *(".~lock.train.csv#", "~$train.xlsx", "~$Books.de-en.de", ".DS_Store", "._train.jsonl", "Thumbs.db", ".directory"),
    *("desktop.ini", ".train.jsonl.swp", "train.jsonl~", "data/._test.jsonl"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with a corpus."""
    return write(tmp_path / "corpus", {"train.jsonl": json_lines(reviews(40)), "data/test.jsonl": b""})


def test_files_that_programs_leave_are_not_read(corpus: Path) -> None:
    write(corpus, dict.fromkeys(LEFT, b"x"))
    found = read_folder(corpus, columns=Columns({name: name for name in ("de", "en")}))
    assert found.origin["files"] == {"train": ["train.jsonl"], "test": ["data/test.jsonl"]}
    assert not found.ignored
    assert text_extensions(write(corpus.parent / "other", dict.fromkeys(LEFT, b"x"))) == []


def test_they_do_not_change_an_input(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, name)
    content, task = read_params(ROOT / "params.yaml"), open_task("sentiment")
    content["sentiment"]["download"]["path"] = "corpus"
    started = InputSnapshot(Path("params.yaml"), content, "download", task, task.family.stage("download").Params)
    write(corpus, dict.fromkeys(LEFT, b"x"))
    assert not started._changed_inputs()
    write(corpus, {"val.jsonl": b"x"})
    assert [Path(name).name for name in started._changed_inputs()] == ["val.jsonl"]
    with Repo.init(no_scm=True) as repo:
        assert all(repo.dvcignore.is_ignored_file(str(corpus / name)) for name in LEFT)
        assert not repo.dvcignore.is_ignored_file(str(corpus / "train.jsonl"))


@pytest.mark.parametrize("given", [".", "..", "/", "data/.."])
def test_a_folder_around_the_project_is_refused(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project/data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    for path in (ROOT / "data/local").iterdir():
        Path("data/local", path.name).mkdir(parents=True)
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    Path("params.yaml").write_text(text.replace("path: data/local/sentiment", f"path: {given}"), encoding="utf-8")
    with pytest.raises(UserError, match=r"`sentiment.download.path`: \S+ contains this project: name a folder with n"):
        check_params(Path("params.yaml"))
    refuse_around_project(Path("data"))


def test_so_many_labels_are_counted() -> None:
    with pytest.raises(ValueError, match=r"must be 2 to 128 different labels, not 300,000$"):
        LabelledDownload._as_text([str(number) for number in range(300_000)])
