"""params.yaml: every error is one line that says where."""

import re
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.hydra import apply_overrides
from dvc.utils.serialize import ParseError, load_yaml
from ruamel.yaml import YAML

from tests.builders import small_runtime
from tests.kit import ROOT, fresh_profile
from transformer.commands.check import check_params
from transformer.commands.profiles import DEFAULT, profile_params
from transformer.core.errors import UserError
from transformer.core.params import read_params, stage_params
from transformer.core.task import open_task


def changed(path: str, value: Any, *, profile: str = DEFAULT, **more: Any) -> dict[str, Any]:
    """A profile's parameters with one leaf changed; `...` removes it. more: further leaves."""
    content = fresh_profile(profile)
    for name, given in {path: value, **more}.items():
        *sections, leaf = name.split(".")
        section = content
        for part in sections:
            section = section[part]
        section[leaf] = given
        if given is ...:
            del section[leaf]
    return content


def check(tmp_path: Path, path: str, value: Any, **more: Any) -> None:
    """Check what `changed` returns, as if it was read from a file: YAML takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer.commands.check.read_params", lambda _: changed(path, value, **more))
        check_params(tmp_path / "params.yaml")


def test_a_folder_that_dvc_takes_for_empty_is_found_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (ROOT / "data/local").iterdir():
        (tmp_path / "data/local" / path.name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry/.dvc").mkdir(parents=True)
    with pytest.raises(UserError, match=r"`translation\.download\.added`: registry has a `\.dvc`"):
        check(tmp_path, "translation.download.added", "registry")


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml")))
def test_all_that_we_ship_is_valid(name: str, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(profile_params(ROOT, name))
    check_params(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("translation.train.learning_rate", "fast", r"`translation.train.learning_rate`: .*number.*, not 'fast'"),
        ("translation.train.learning_rate", -1.0, r"`translation.train.learning_rate`: .*greater than 0, not -1"),
        ("translation.train.learning_rate", float("nan"), r"`translation.train.learning_rate`: .*not nan"),
        ("translation.train.epochs", 1.5, r"`translation.train.epochs`: .*not 1.5"),
        ("translation.train.epochs", True, r"`translation.train.epochs`: .*not True"),
        ("translation.train.speed", 1, r"`translation.train.speed`: Extra inputs"),
        ("translation.train.clip", ..., r"`translation.train.clip`: Field required"),
        ("translation.model.heads", 3, r"`translation.model`: d_model \(128\) must be a multiple of heads \(3\)"),
        ("translation.model.positions", "absolute", r"`translation.model.positions`: .*'rotary'.*, not 'absolute'"),
        ("translation.model.kind", "cnn", r"`translation.model.kind`: .*'transformer', 'recurrent', not 'cnn'"),
        ("translation.model.kind", 3, r"`translation.model.kind`: .*'transformer', 'recurrent', not 3"),
        ("translation.model.kind", ..., r"`translation.model.kind`: Field required"),
        ("translation.model.kind", "recurrent", r"`translation.model.cell`: Field required"),
        ("translation.model.depth", 3, r"`translation.model.depth`: Extra inputs are not permitted, not 3"),
        ("translation.model.d_ff", ..., r"`translation.model.d_ff`: Field required"),
        ("translation.train", {"epoch": 3}, r"`translation.train.epoch`: is not a parameter: `epochs` is missing here"),
        ("translation.model", 3, r"`translation.model`: .*not 3"),
        ("translation.tokenize.target", "de", r"`translation.tokenize`: source and target are both `de`"),
        (
            "translation.download.languages",
            ["fr", "en"],
            r"`translation`: download.languages is \['fr', 'en'\], but the sample corpus is in de and en",
        ),
        ("translation.tokenize.source", "fr", r"tokenize.source is 'fr', but download.languages is \['de', 'en'\]"),
        (
            "translation.download.path",
            "data/mine",
            r"`translation.download.path`: 'data/mine' does not exist",
        ),
        ("sentiment.download.path", "x" * 5000, r"`sentiment.download.path`: 'xxx"),
        ("sentiment.vocab.path", "data/none", r"`sentiment.vocab.path`: 'data/none' does not exist"),
        ("translation.vocab.path", "data/language/vocab", r"`translation.vocab`: vocab.path is data/lang"),
        ("translation.vocab.source", "path", r"`translation.vocab`: vocab.source must be `trained`"),
        (
            "sentiment.model.pooling",
            "last",
            r"`sentiment.model.pooling`: .*'first', .*'attention', not 'last'",
        ),
        (
            "translation.evaluate.n_best",
            2,
            r"`translation.evaluate`: greedy finds one answer, so n_best must be 1",
        ),
        ("translation.model.tie_embeddings", "all", r"`translation`: model.tie_embeddings `all` needs one vocabulary"),
        ("translation.evaluate.long_sources", "drop", r"`translation.evaluate.long_sources`: .*'refuse', not 'drop'"),
        (
            "translation.evaluate.baseline",
            "main",
            r"`translation.evaluate.baseline`: baseline must be a commit's id .*not 'main'",
        ),
        ("sentiment.evaluate.baseline", 1234567, r"`sentiment.evaluate.baseline`: .*number 1234567: put .* in quotes"),
        ("sentiment.evaluate.baseline", float("inf"), r"`sentiment.evaluate.baseline`: .*number inf: put .* in quotes"),
        ("sentiment.evaluate.bootstrap_samples", -1, r"`sentiment.evaluate.bootstrap_samples`: .*not -1"),
        ("translation.train.schedule", "noam2", r"`translation.train.schedule`: .*'cosine', not 'noam2'"),
        ("translation.train.weight_decay", 0.1, r"`translation.train`: weight_decay needs optimizer `adamw`"),
        ("translation.vocab.kind", "bpe", r"`translation.vocab`: vocab.max_size must be a number for a trained `bpe`"),
        ("translation.vocab.byte_fallback", True, r"`translation.vocab`: vocab.byte_fallback must be false for kind"),
        ("translation.vocab.bpe_dropout", 0.1, r"`translation.vocab`: vocab.bpe_dropout must be 0 for kind `word`"),
        ("translation.vocab.bpe_dropout", 1.0, r"`translation.vocab.bpe_dropout`: .*less than 1, not 1.0"),
        ("sentiment.export.alias", "Latest", r"`sentiment.export.alias`: MLflow reserves `latest` for the newest"),
        ("sentiment.vocab.joint", True, r"`sentiment.vocab`: joint must be false: the texts are the only side"),
        (
            "sentiment.download.source",
            "files",
            r"`sentiment.model.init`: .* only generated texts; .* model.init: random, mod",
        ),
        ("hardware.threads", 0, r"`hardware.threads`: .*not 0"),
        ("hardware", ..., r"`hardware`"),
        ("runtime.progress", "yes", r"`runtime.progress`: .*not 'yes'"),
        ("sentiment.train", ..., r"the section `sentiment.train` is missing"),
        ("sentiment", [1], r"the section `sentiment` is missing or not a mapping"),
        ("summarisation", {}, r"`summarisation` is not a section"),
        ("sentiment.labels", {}, r"`sentiment.labels` is not a section"),
    ],
)
def test_a_fault_is_one_line_that_says_where(path: str, value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        check(tmp_path, path, value)
    assert str(tmp_path / "params.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("task", "leaf", "value"), [("translation", "head_dim", 5), ("sentiment", "heads", 64)])
def test_rotary_positions_need_pairs_of_dimensions(task: str, leaf: str, value: int, tmp_path: Path) -> None:
    check(tmp_path, f"{task}.model.positions", "rotary")
    with pytest.raises(UserError, match=rf"`{task}.model`: positions `rotary` rotates pairs .*a head has \d") as caught:
        check(tmp_path, f"{task}.model.{leaf}", value, **{f"{task}.model.positions": "rotary"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("translation.model.attention", "self", r"`translation.model.attention`: .*'luong_scaled_general', not 'self'"),
        ("translation.model.local_window", 2, r"`translation.model`: local_window \(2\) needs a Luong attention"),
        ("translation.model.attention", "luong_dot", r"`translation.model`: attention `luong_dot` .*bidirectional"),
        ("translation.model.teacher_forcing", 0.0, r"`translation.model.teacher_forcing`: .*greater than 0, not 0.0"),
        ("translation.model.heads", 8, r"`translation.model.heads`: Extra inputs"),
        ("sentiment.model.pooling", "first", r"`sentiment.model.pooling`: .*'last', 'mean' or 'max', not 'first'"),
        ("sentiment.model.kind", "transformer", r"`sentiment.model.d_model`: Field required"),
    ],
)
def test_so_is_a_fault_of_a_recurrent_model(path: str, value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        check(tmp_path, path, value, profile="rnn")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "profile", "message"),
    [
        (
            {"translation.model.teacher_forcing": 0.5, "translation.train.r_drop": 1.0},
            "rnn",
            "teacher_forcing must be 1",
        ),
        (
            {"translation.model.teacher_forcing": 0.5, "translation.train.simcut": 1.0},
            "rnn",
            "teacher_forcing must be 1",
        ),
    ],
)
def test_two_passes_are_over_the_same_input(
    changes: dict[str, Any], profile: str, message: str, tmp_path: Path
) -> None:
    (first, value), *others = changes.items()
    with pytest.raises(UserError, match=rf"train\.(r_drop|simcut) compares two passes .*{message}"):
        check(tmp_path, first, value, profile=profile, **dict(others))


@pytest.mark.parametrize("task", ["translation", "sentiment", "language"])
def test_two_passes_need_something_that_differs(task: str, tmp_path: Path) -> None:
    """The default has no dropout."""
    with pytest.raises(
        UserError, match=r"train\.r_drop compares two passes with different dropout.* set model\.dropout"
    ):
        check(tmp_path, f"{task}.train.r_drop", 1.0)
    check(tmp_path, f"{task}.train.r_drop", 1.0, **{f"{task}.model.attention_dropout": 0.1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"translation.vocab.joint": False}, r"train\.bidirectional_epochs needs one vocabulary .* vocab\.joint"),
        ({"translation.train.r_drop": 1.0, "translation.train.simcut": 1.0}, r"r_drop and simcut .* must be 0"),
        ({"translation.train.epochs": 3}, r"train`: bidirectional_epochs \(3\) must be below epochs \(3\)"),
        (
            {"translation.train.averaging": "last", "translation.train.average_epochs": 7},
            r"train`: the mean of the last average_epochs \(7\) would include .* set it to 6 at most",
        ),
        (
            {"translation.train.averaging": "best", "translation.train.average_epochs": 7},
            r"train`: the mean of the best average_epochs \(7\) would include .* set it to 6 at most",
        ),
        ({"translation.train.patience": 3}, r"train`: with bidirectional_epochs, .* set patience to null"),
        (
            {"translation.train.simcut": 1.0, "translation.train.consistency_from": 10},
            r"train`: consistency_from \(10\) must be at most epochs \(9\)",
        ),
        (
            {
                "translation.train.bidirectional_epochs": 0,
                "translation.train.r_drop": 1.0,
                "translation.train.consistency_from": 4,
                "translation.train.patience": 3,
            },
            r"train`: with consistency_from, .* set patience to null",
        ),
    ],
)
def test_parameters_of_translations_training_that_do_not_fit(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "translation.train.epochs": 9,
        "translation.train.patience": None,
        "translation.vocab.joint": True,
    }
    settings |= changes
    with pytest.raises(UserError, match=message) as caught:
        check(tmp_path, "translation.train.bidirectional_epochs", 3, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"translation.evaluate.mbr_utility": "chrf"},
            "mbr_utility `chrf` needs method `beam` and a beam_size above 1",
        ),
        ({"translation.evaluate.temperature": 1e-310}, r"greater than or equal to 0\.000001, not 1e-310"),
    ],
)
def test_parameters_that_would_change_nothing_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    ((leaf, value),) = changes.items()
    with pytest.raises(UserError, match=message):
        check(tmp_path, leaf, value)


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        (
            {"translation.tokenize.kind": "spacy"},
            "`translation.tokenize`: the target's kind `spacy` splits Chinese into",
        ),
        (
            {
                "translation.tokenize.source": "zh",
                "translation.tokenize.target": "en",
                "translation.tokenize.kind": "spacy",
            },
            None,
        ),
        (
            {"language.tokenize.kind": "spacy", "language.model.objective": "causal"},
            "`language`: tokenize.kind `spacy`",
        ),
        ({"language.tokenize.kind": "spacy", "language.model.objective": "masked"}, None),
    ],
)
def test_answers_that_cannot_be_joined_again_are_refused(
    changes: dict[str, Any], refused: str | None, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "translation.tokenize.source": "en",
        "translation.tokenize.target": "zh",
        "translation.tokenize.kind": "none",
        "translation.download.source": "hub",
        "translation.download.languages": ["en", "zh"],
    }
    with pytest.raises(UserError, match=refused) if refused else nullcontext():
        check(tmp_path, "language.tokenize.language", "zh", **settings | changes)


@pytest.mark.parametrize(
    "content",
    [
        *(b"a: [1", b"\xff\xfe\x00", b"- 1", b""),
        b"a: 2026-02-30",
    ],
)
def test_no_yaml_mapping_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(UserError) as caught:
        check_params(tmp_path / "params.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a:\t1\t# one\n", "%YAML 1.1\n---\na: 010\nb: yes\n", "\ufeffa: 1e-4\n", "a: on\nb: 0o10\nc: 1_0\n", "a: {b:1}\n"],
)
def test_dvc_reads_the_same(text: str, tmp_path: Path) -> None:
    """Otherwise a stage would run with other values than dvc.lock records."""
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        values = load_yaml(path)
    except ParseError:
        with pytest.raises(UserError):
            read_params(path)
    else:
        assert repr(read_params(path)) == repr(values)


@pytest.mark.parametrize("labels", ["[a, 2026-01-31]", "{a: b, 2026-01-31: c}", "[a, !!binary aGk=]", "!!set {a, b}"])
def test_values_that_dvc_cannot_record_are_one_line(labels: str, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(re.sub(r"labels: train", f"labels: {labels}", (ROOT / "params.yaml").read_text()))
    with pytest.raises(UserError, match=r"is a (date|bytes|set) in YAML: quote it"):
        check_params(path)


def test_yaml_1_2_numbers(tmp_path: Path) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    path = tmp_path / "params.yaml"
    path.write_text(re.sub(r"learning_rate: \S+", "learning_rate: 1e-4", path.read_text()))
    schema: Any = open_task("translation").family.stage("train").Params
    assert stage_params(read_params(path), "translation", schema, where=path).train.learning_rate == 1e-4


def test_whole_floats_are_integers(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    with path.open("w") as stream:
        YAML().dump(changed("translation.train.warmup", 4e3), stream)
    schema: Any = open_task("translation").family.stage("train").Params
    assert stage_params(read_params(path), "translation", schema, where=path).train.warmup == 4000


def test_a_stage_is_given_its_own_sections_only() -> None:
    path = ROOT / "params.yaml"
    params = stage_params(
        read_params(path), "sentiment", open_task("sentiment").family.stage("tokenize").Params, where=path
    )
    assert set(params.model_dump()) == {"runtime", "tokenize"}


def test_a_changed_copy_is_validated() -> None:
    """Unlike pydantic's own: a misspelt name would have no effect, in silence."""
    runtime = small_runtime()
    assert runtime.model_copy(update={"workers": 2}).workers == 2
    assert runtime.model_copy() == runtime
    for update, message in (
        ({"worker": 2}, "changed parameters: `Runtime.worker`: Extra inputs are not permitted"),
        ({"workers": -1}, "changed parameters: `Runtime.workers`: Input should be greater than or equal to 0, not -1"),
    ):
        with pytest.raises(UserError, match=message):
            runtime.model_copy(update=update)


def test_an_experiment_can_empty_every_list_after_another_one(tmp_path: Path) -> None:
    """DVC writes lists in block style; with a comment after an empty one, the next section stood on its line."""
    path, texts = tmp_path / "params.yaml", (ROOT / "params.yaml").read_text(encoding="utf-8")
    path.write_text(texts, encoding="utf-8")
    content = load_yaml(path)
    lists = [name for name, value in leaves(content) if isinstance(value, list)]
    assert "translation.convert.formats" in lists
    apply_overrides(path, ["sentiment.train.epochs=1"])
    apply_overrides(path, [f"{name}=[]" for name in lists])
    found = dict(leaves(load_yaml(path)))
    assert found == dict(leaves(content)) | {name: [] for name in lists} | {"sentiment.train.epochs": 1}


def leaves(section: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
