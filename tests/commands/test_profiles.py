"""params.yaml is the default with a profile's values, says so, and is never overwritten once it has edits."""

import re
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.kit import ROOT, fresh_profile, set_leaves
from transformer.commands.check import check_params
from transformer.commands.profiles import DEFAULT, PARAMS, profile_params, use_profile
from transformer.core.errors import UserError
from transformer.core.params import leaves, read_params

PROFILES = sorted(path.stem for path in (ROOT / "profiles").iterdir())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with our profiles alone: no git, no params.yaml."""
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    return tmp_path


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with local corpora and a vocab.txt."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("multi30k", "imdb", "bert-base-uncased"):
        (folder / name).mkdir()
    (folder / "bert-base-uncased" / "vocab.txt").touch()
    return folder


def overlay(project: Path, text: str) -> None:
    (project / "profiles" / "mine.yaml").write_text(text)


def test_the_committed_params_yaml_is_the_profile_that_it_names() -> None:
    text = (ROOT / PARAMS).read_text(encoding="utf-8")
    name = re.split("[,;]", text.removeprefix("# profile: "))[0]
    assert text == profile_params(ROOT, name), f"run `transformer profile {name}`"


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_has_only_what_differs_and_keeps_every_comment(name: str, project: Path) -> None:
    use_profile(project, name, None)
    source = (ROOT / "profiles" / f"{name}.yaml").read_text()
    default, merged = fresh_profile(DEFAULT), read_params(project / PARAMS)
    written = leaves(YAML(typ="safe", pure=True).load(source))
    assert written.items() <= leaves(merged).items()
    kinds = [path for path in written if path.endswith(".model.kind") and written[path] != leaves(default)[path]]
    whole = tuple(path.removesuffix("kind") for path in kinds)  # a model of another kind replaces the whole section
    repeated = [path for path, value in written.items() if leaves(default).get(path, ...) == value]
    assert name == DEFAULT or not [path for path in repeated if not path.startswith(whole)]
    text = (project / PARAMS).read_text()
    assert source.partition("\n\n")[0] in text, "what the profile says of itself"
    assert "  device: cpu # cpu, cuda, mps\n" in text.replace("cuda #", "cpu #"), "what the default says of a leaf"
    assert not re.search(r"\S  +#", text)


def test_a_section_of_another_kind_is_replaced(project: Path) -> None:
    overlay(project, "sentiment:\n  model:\n    kind: recurrent # mine\n    cell: gru\n  tokenize: {kind: spacy}\n")
    use_profile(project, "mine", None)
    content = read_params(project / PARAMS)["sentiment"]
    assert content["model"] == {"kind": "recurrent", "cell": "gru"}
    assert content["tokenize"] == fresh_profile(DEFAULT)["sentiment"]["tokenize"] | {"kind": "spacy"}
    assert "kind: recurrent # mine\n" in (project / PARAMS).read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("translation: {train: {epoch: 3}}", r"profiles/mine.yaml: `translation.train.epoch` is not a parameter"),
        ("translation: {train: 3}", r"profiles/mine.yaml: `translation.train` must be a section"),
        ("hardware: [", r"profiles/mine.yaml cannot be read"),
        ("", r"profiles/mine.yaml must be a mapping of sections, not NoneType"),
        ("hardware: {threads: 1}\nhardware: {threads: 2}", r"profiles/mine.yaml cannot be read"),
    ],
)
def test_a_fault_of_a_profile_is_one_line_and_changes_nothing(project: Path, text: str, message: str) -> None:
    overlay(project, text)
    with pytest.raises(UserError, match=message) as caught:
        use_profile(project, "mine", None)
    assert "\n" not in str(caught.value)
    assert not (project / PARAMS).exists()


def test_one_profile_after_another_is_the_other_alone(project: Path, data: Path) -> None:
    """Whatever became of the files in profiles/ in between, as by a pull or an edit."""
    overlay(project, "hardware:\n  threads: 3\n")
    for name, corpora in [("rnn", data), ("paper", None), (None, data), ("mine", None)]:
        assert use_profile(project, name, corpora) == f"params.yaml: {name or 'paper'} put in place"
        assert use_profile(project, name, corpora) == f"params.yaml: {name or 'paper'} already in place"
    assert (project / PARAMS).read_text() == profile_params(project, "mine")
    overlay(project, "hardware:\n  threads: 4\n")
    use_profile(project, "mine", None)
    set_leaves(project / "profiles/default.yaml", {"hardware.device": "cuda"})
    use_profile(project, "mine", None)
    hardware = read_params(project / PARAMS)["hardware"]
    assert (hardware["threads"], hardware["device"]) == (4, "cuda")


@pytest.mark.parametrize(
    ("old", "new"),
    [("epochs: ", "epochs: 1"), ("# cpu, cuda, mps", "# mine"), ("# profile: paper;", "# Mine:"), ("", "\ufeff")],
)
def test_edits_are_never_overwritten(old: str, new: str, project: Path, data: Path) -> None:
    use_profile(project, "paper", None)
    edited = (project / PARAMS).read_text().replace(old, new, 1).encode()
    (project / PARAMS).write_bytes(edited)
    for name, corpora in [("seed", None), (None, data)]:
        with pytest.raises(UserError, match=r"params.yaml has edits: .* delete params\.yaml to drop them"):
            use_profile(project, name, corpora)
    assert (project / PARAMS).read_bytes() == edited
    (project / PARAMS).unlink()
    use_profile(project, "seed", None)


@pytest.mark.parametrize(
    ("name", "init", "vocab"),
    [("seed", "random", "path"), (DEFAULT, "random", "trained"), ("pretrained", "pretrained", "built")],
)
def test_local_corpora_point_at_the_folders_and_start_from_no_model_of_generated_texts(
    name: str, init: str, vocab: str, project: Path, data: Path
) -> None:
    """The default's language model knows the words of the sample alone."""
    use_profile(project, name, data)
    assert (project / PARAMS).read_text().startswith(f"# profile: {name}, data: {data}; ")
    check_params(project / PARAMS)
    content = read_params(project / PARAMS)
    for task, folder in {"translation": "multi30k", "sentiment": "imdb"}.items():
        download = content[task]["download"]
        assert (download["source"], download["path"]) == ("files", str(data / folder))
    assert content["translation"]["vocab"]["source"] == "trained"
    model = content["sentiment"]["model"]
    assert (model["init"], content["sentiment"]["vocab"]["source"]) == (init, vocab)
    assert (model["pretrained"] == "models/language/trained") == (init == "pretrained")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (None, None, r"^say which profile: best, .*, wide$"),
        ("nowhere", None, "no profile `nowhere`: choose one of best, cased, default, diversified, long, "),
        ("../params", None, r"^`\.\./params` cannot name a profile"),
        ("seed", Path("nowhere"), "^nowhere has none of the folders language, imdb, sentiment, multi30k, translation"),
    ],
)
def test_unknown_profiles_and_folders_are_one_clear_line(
    name: str | None, data: Path | None, message: str, project: Path
) -> None:
    with pytest.raises(UserError, match=message):
        use_profile(project, name, data)


def test_a_merge_that_is_not_resolved_is_not_called_an_edit(project: Path) -> None:
    """Dropping it, as for edits, would drop the other side."""
    (project / PARAMS).write_text("<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n")
    for fails in (lambda: use_profile(project, "seed", None), lambda: check_params(project / PARAMS)):
        with pytest.raises(UserError, match=r"params\.yaml has conflict markers: edit it, or take one side"):
            fails()
