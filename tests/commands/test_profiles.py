"""Profiles are merged into the default params.yaml, and never overwrite a user's edits."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.kit import ROOT, git
from transformer.cli import main
from transformer.commands.check import check_params
from transformer.commands.profiles import (
    DEFAULT,
    default_params,
    profile_params,
    profile_values,
    set_back,
    starts_from_samples,
    use_profile,
)
from transformer.core.errors import UserError
from transformer.core.params import read_params

PROFILES = ("seed", "paper", "rnn", "smoke")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with our params.yaml and profiles, committed."""
    (tmp_path / "params.yaml").write_text(default_params(ROOT))
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "what is there")


def overlay(project: Path, text: str) -> None:
    """A profile `mine`."""
    (project / "profiles" / "mine.yaml").write_text(text)


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with local corpora and a vocab.txt."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("multi30k", "imdb", "bert-base-uncased"):
        (folder / name).mkdir()
    (folder / "bert-base-uncased" / "vocab.txt").touch()
    return folder


def leaves(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {prefix: values}
    return {path: leaf for name, value in values.items() for path, leaf in leaves(value, f"{prefix}.{name}").items()}


@pytest.mark.parametrize("name", [*PROFILES, "cased"])
def test_a_profile_holds_only_what_differs(name: str) -> None:
    default, merged = (leaves(profile_values(ROOT, each)) for each in (DEFAULT, name))
    written = leaves(YAML(typ="safe", pure=True).load((ROOT / "profiles" / f"{name}.yaml").read_text()))
    assert all(merged[path] == value for path, value in written.items())
    repeated = {path for path, value in written.items() if default.get(path, ...) == value}
    assert {path.rpartition(".")[0] for path in repeated if name == "rnn"} <= {".translation.model", ".sentiment.model"}
    assert name == "rnn" or not repeated  # a model of another kind replaces the whole section


def test_comments_and_order_are_those_of_the_default(project: Path) -> None:
    """Line by line: the profile's header, then the default with other values."""
    use_profile(project, "paper", None)
    lines = (project / "params.yaml").read_text().splitlines()
    start = lines.index("hardware:")
    assert lines[0] == "# Profile paper: the default with what profiles/paper.yaml changes."
    assert "# English to German: make repro PROFILE=paper, then" in lines[:start]
    default = default_params(ROOT).splitlines()
    body = [line for line in default[default.index("hardware:") :] if not line.startswith("      - ")]  # sentences
    names = [[line.split(":")[0] for line in each] for each in (body, lines[start:])]
    assert names[0] == names[1]
    comments = [[line.partition(" # ")[2] for line in each] for each in (body, lines[start:])]
    other = [pair[1] for pair in zip(*comments, strict=True) if pair[0] != pair[1]]
    factor = "a factor: the peak is 1.8 * (d_model * warmup)^-0.5, 5e-3"
    assert {*other} == {factor, "of the Hub; of files without names"}
    assert not any(re.search(r"\S  +#", line) for line in lines)


def test_a_section_of_another_kind_is_replaced(project: Path) -> None:
    overlay(project, "sentiment:\n  model:\n    kind: recurrent # mine\n    cell: gru\n  tokenize:\n    kind: spacy\n")
    use_profile(project, "mine", None)
    content = read_params(project / "params.yaml")
    assert content["sentiment"]["model"] == {"kind": "recurrent", "cell": "gru"}
    others = {"language": "en", "lowercase": True, "html_breaks": "keep"}
    assert content["sentiment"]["tokenize"] == {"kind": "spacy", **others}
    assert "kind: recurrent # mine\n" in (project / "params.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("translation: {train: {epoch: 3}}", r"profiles/mine.yaml: `translation.train.epoch` is not a parameter"),
        ("summarisation: {}", r"profiles/mine.yaml: `summarisation` is not a parameter"),
        ("translation: {train: 3}", r"profiles/mine.yaml: `translation.train` must be a section"),
        ("translation:", r"profiles/mine.yaml: `translation` must be a section"),
        ("hardware: {threads: {a: 1}}", r"profiles/mine.yaml: `hardware.threads` must be one value"),
        ("hardware: [", r"profiles/mine.yaml cannot be read"),
        ("- hardware", r"profiles/mine.yaml must be a mapping of sections, not CommentedSeq"),
        ("", r"profiles/mine.yaml must be a mapping of sections, not NoneType"),
        ("hardware: {threads: 1}\nhardware: {threads: 2}", r"profiles/mine.yaml cannot be read"),
    ],
)
def test_a_fault_of_a_profile_is_one_line_and_changes_nothing(project: Path, text: str, message: str) -> None:
    overlay(project, text)
    with pytest.raises(UserError, match=message) as caught:
        use_profile(project, "mine", None)
    assert "\n" not in str(caught.value)
    assert (project / "params.yaml").read_bytes() == default_params(ROOT).encode()


def test_a_profile_is_put_in_place_once(project: Path) -> None:
    assert use_profile(project, "seed", None) is True
    assert (project / "params.yaml").read_text() == profile_params(ROOT, "seed")
    assert use_profile(project, "seed", None) is False


@pytest.mark.parametrize("committed", [False, True])
def test_one_profile_after_another_is_the_other_alone(committed: bool, project: Path, data: Path) -> None:
    """Whether or not the first one was committed in between; then back to the default."""
    for name, corpora in [("rnn", data), ("paper", None), (None, data), ("smoke", None), ("seed", None)]:
        assert use_profile(project, name, corpora) is True
        if name and corpora is None:
            assert (project / "params.yaml").read_text() == profile_params(ROOT, name)
        if committed:
            commit(project)
    assert use_profile(project, DEFAULT, None) is True
    assert (project / "params.yaml").read_bytes() == default_params(ROOT).encode()
    assert use_profile(project, DEFAULT, None) is False


def test_a_profile_follows_the_committed_default(project: Path) -> None:
    edited = (project / "params.yaml").read_text().replace("device: cpu", "device: cuda")
    (project / "params.yaml").write_text(edited)
    commit(project)
    use_profile(project, "seed", None)
    assert read_params(project / "params.yaml")["hardware"]["device"] == "cuda"
    use_profile(project, DEFAULT, None)
    assert (project / "params.yaml").read_text() == edited


def test_the_command_says_which_profile_is_in_place(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "argv", ["transformer", "profile", "smoke"])
    (project / ".dvc").mkdir()
    (project / "dvc.yaml").touch()
    main()
    assert capsys.readouterr().out.splitlines()[0] == "params.yaml: smoke put in place"


def test_a_default_with_a_byte_order_mark_is_one(project: Path) -> None:
    """As Windows' editors write it, committed."""
    edited = (project / "params.yaml").read_text().replace("device: cpu", "device: cuda")
    (project / "params.yaml").write_text(edited, encoding="utf-8-sig")
    commit(project)
    assert default_params(project) == edited
    use_profile(project, "seed", None)
    assert read_params(project / "params.yaml")["hardware"]["device"] == "cuda"
    use_profile(project, DEFAULT, None)
    assert (project / "params.yaml").read_text() == edited


def test_a_merged_default_counts_where_a_profile_is_committed(project: Path) -> None:
    """As from upstream, with `git merge -X ours`: history as git simplifies it goes past the other side."""
    git(project, "checkout", "-q", "-b", "upstream")
    text = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(text.replace("device: cpu", "device: cuda"))
    commit(project)
    git(project, "checkout", "-q", "-")
    use_profile(project, "seed", None)
    commit(project)
    git(project, "merge", "-q", "-s", "ours", "--no-edit", "upstream")
    use_profile(project, DEFAULT, None)
    assert read_params(project / "params.yaml")["hardware"]["device"] == "cuda"
    (project / "params.yaml").write_text(text)
    commit(project)
    use_profile(project, "seed", None)
    assert read_params(project / "params.yaml")["hardware"]["device"] == "cpu", "HEAD's own is the newest"
    commit(project)
    git(project, "checkout", "-q", "upstream")
    (project / "params.yaml").write_text(text.replace("device: cpu", "device: mps"))
    commit(project)
    git(project, "checkout", "-q", "-")
    git(project, "merge", "-q", "-s", "ours", "--no-edit", "upstream")
    use_profile(project, DEFAULT, None)
    assert read_params(project / "params.yaml")["hardware"]["device"] == "cpu", "which the branch does not have"


def test_sections_that_a_profile_sets_back_are_named(project: Path) -> None:
    overlay(project, "sentiment:\n  model:\n    dropout: 0.4\n")
    use_profile(project, "paper", None)
    before = (project / "params.yaml").read_bytes()
    use_profile(project, "mine", None)
    assert set_back(project, before) == ["hardware", "runtime", "translation"]
    assert set_back(project, (project / "params.yaml").read_bytes()) == []
    assert set_back(project, b"\xff") == [] == set_back(project, b"- no sections")


def test_default_corpora_in_place_are_not_the_default(project: Path, data: Path) -> None:
    use_profile(project, None, data)
    assert profile_params(project, "smoke") == profile_params(ROOT, "smoke")
    commit(project)
    assert profile_params(project, "smoke") == profile_params(ROOT, "smoke")
    assert not use_profile(project, None, data)
    assert use_profile(project, DEFAULT, None)
    assert (project / "params.yaml").read_text() == default_params(ROOT)


def test_without_a_default_in_the_history_it_is_one_line(project: Path) -> None:
    use_profile(project, "seed", None)
    shutil.rmtree(project / ".git")
    git(project, "init", "-q")
    commit(project)
    seed = (project / "params.yaml").read_bytes()
    with pytest.raises(UserError, match="no commit here has the default"):
        use_profile(project, "paper", None)
    assert (project / "params.yaml").read_bytes() == seed


@pytest.mark.parametrize("name", [DEFAULT, "seed"])
@pytest.mark.parametrize("before", [DEFAULT, "paper"])
def test_edits_that_are_not_committed_are_never_overwritten(before: str, name: str, project: Path) -> None:
    use_profile(project, before, None)
    edited = re.sub(r"epochs: \d+", "epochs: 9", (project / "params.yaml").read_text())
    (project / "params.yaml").write_text(edited)
    with pytest.raises(UserError, match="edits that are not committed"):
        use_profile(project, name, None)
    assert (project / "params.yaml").read_text() == edited


def test_a_merge_that_is_not_resolved_is_not_called_an_edit(project: Path) -> None:
    """Dropping it, as for edits, would drop the other side."""
    text = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n")
    for fails in (lambda: use_profile(project, "seed", None), lambda: check_params(project / "params.yaml")):
        with pytest.raises(UserError, match=r"params\.yaml has conflict markers: edit it, or take one side"):
            fails()


def test_edits_that_local_corpora_were_added_to_are_never_overwritten(project: Path, data: Path) -> None:
    edited = re.sub(r"epochs: \d+", "epochs: 9", (project / "params.yaml").read_text())
    (project / "params.yaml").write_text(edited)
    use_profile(project, None, data)
    with pytest.raises(UserError, match="edits that are not committed"):
        use_profile(project, "seed", None)
    assert "epochs: 9" in (project / "params.yaml").read_text()


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


@pytest.mark.parametrize(("name", "init"), [(DEFAULT, "random"), ("pretrained", "pretrained"), ("paper", "random")])
def test_local_texts_do_not_start_from_a_model_of_generated_ones(
    name: str, init: str, project: Path, data: Path
) -> None:
    """The default's language model knows the words of the sample alone."""
    use_profile(project, name, data)
    content = read_params(project / "params.yaml")["sentiment"]
    assert content["model"]["init"] == init
    assert (content["vocab"]["source"] == "built") == (init == "pretrained")
    assert (content["model"]["pretrained"] == "models/language/trained") == (init == "pretrained")
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


@pytest.mark.parametrize("text", ["translation:", "translation: 3", "translation: {model: {}, vocab: {}, download:}"])
def test_local_corpora_need_the_sections_that_they_change(text: str, data: Path, project: Path) -> None:
    (project / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^params.yaml: the section `translation.download` is missing or not a map"):
        use_profile(project, None, data)
    assert (project / "params.yaml").read_text() == text


@pytest.mark.parametrize("language", [None, 3, {"download": None}, {"download": 3}])
def test_a_broken_section_of_the_language_model_is_that_of_no_sample(language: Any) -> None:
    model = {"init": "pretrained", "pretrained": "models/language/trained"}
    assert not starts_from_samples({"sentiment": {"model": model}, "language": language}, "sentiment")
    assert not starts_from_samples({"sentiment": {"model": {"pretrained": None}}}, "sentiment")


def test_without_a_name_and_a_folder_the_profiles_are_listed(project: Path) -> None:
    with pytest.raises(UserError, match=r"^say which profile: default, best, .*, wide$"):
        use_profile(project, None, None)


def test_make_runs_one_task_alone() -> None:
    command = ["make", "-n", "-o", ".venv/.installed", "repro", "TASK=translation"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "dvc repro report@translation\n" in done.stdout


def test_unknown_profiles_and_folders_are_one_clear_line(project: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match="no profile `nowhere`: choose one of default, best, cased, diversified, paper, pretrained,"
        " pretrained-large, rnn",
    ):
        use_profile(project, "nowhere", None)
    with pytest.raises(UserError, match=r"^`\.\./params` cannot name a profile"):
        use_profile(project, "../params", None)
    with pytest.raises(UserError, match="has none of the folders language, imdb, sentiment, multi30k, translation"):
        use_profile(project, "seed", tmp_path / "profiles")
