"""params.yaml: every error is one line that says where."""

import datetime
import random
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.serialize import ParseError, load_yaml

from tests.builders import small_runtime
from tests.kit import ROOT, fresh_profile
from transformer.commands.check import check_params
from transformer.commands.profiles import DEFAULT, profile_params
from transformer.core.errors import UserError
from transformer.core.params import read_params, stage_params
from transformer.core.task import open_task

PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))


def check(tmp_path: Path, leaves: dict[str, Any], profile: str = DEFAULT) -> None:
    """Check a profile's parameters with these leaves, `...` for none, as if read from a file: YAML takes long."""
    content = fresh_profile(profile)
    for name, value in leaves.items():
        *sections, leaf = name.split(".")
        section = content
        for part in sections:
            section = section[part]
        section[leaf] = value
        if value is ...:
            del section[leaf]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer.commands.check.read_params", lambda _: content)
        check_params(tmp_path / "params.yaml")


@pytest.mark.parametrize("name", PROFILES)
def test_all_that_we_ship_is_valid(name: str, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(profile_params(ROOT, name))
    check_params(tmp_path / "params.yaml")


FAULTS = [
    ("translation.train.learning_rate", "fast", r": .*number.*, not 'fast'"),
    ("translation.train", {"epoch": 3}, r"translation.train.epoch`: is not a parameter: `epochs` is missing here"),
    ("translation.train.weight_decay", 0.1, r"translation.train`: weight_decay needs optimizer `adamw`"),
    ("translation.model.heads", 3, r"translation.model`: d_model \(128\) must be a multiple of heads \(3\)"),
    ("translation.model.kind", "cnn", r": .*'transformer', 'recurrent', not 'cnn'"),
    ("translation.model.tie_embeddings", "all", r"`translation`: model.tie_embeddings `all` needs one vocabulary"),
    ("translation.tokenize.source", "fr", r"tokenize.source is 'fr', but download.languages is \['de', 'en'\]"),
    ("translation.download.path", "data/mine", r": 'data/mine' does not exist"),
    ("sentiment.download.source", "files", r"sentiment.model.init`: .* only generated texts; .* model.init: random,"),
    ("translation.vocab.path", "data/language/vocab", r"translation.vocab`: vocab.path is data/lang"),
    ("translation.vocab.kind", "bpe", r"translation.vocab`: vocab.max_size must be a number for a trained `bpe`"),
    ("translation.vocab.bpe_dropout", 0.1, r"translation.vocab`: vocab.bpe_dropout must be 0 for kind `word`"),
    ("sentiment.train.r_drop", 1.0, r"`sentiment`: .*r_drop compares two passes .* set model\.dropout"),
    ("translation.evaluate.n_best", 2, r"translation.evaluate`: greedy finds one answer, so n_best must be 1"),
    ("translation.evaluate.mbr_utility", "chrf", r"`chrf` needs method `beam` and a beam_size above 1"),
    ("translation.evaluate.baseline", "main", r": baseline must be a commit's id .*not 'main'"),
    ("sentiment.evaluate.baseline", 1234567, r": .*number 1234567: put .* in quotes"),
    ("sentiment.export.alias", "Latest", r": MLflow reserves `latest` for the newest"),
    ("hardware", ..., r"`hardware`"),
    ("sentiment", [1], r"the section `sentiment` is missing or not a mapping"),
]
RECURRENT_FAULTS = [
    ("translation.model.local_window", 2, r"translation.model`: local_window \(2\) needs a Luong attention"),
    ("translation.model.attention", "luong_dot", r"translation.model`: attention `luong_dot` .*bidirectional"),
]


@pytest.mark.parametrize(
    ("path", "value", "message", "profile"),
    [*((*fault, DEFAULT) for fault in FAULTS), *((*fault, "rnn") for fault in RECURRENT_FAULTS)],
)
def test_a_fault_is_one_line_that_says_where(path: str, value: Any, message: str, profile: str, tmp_path: Path) -> None:
    where = f"`{path}`" if message.startswith(":") else ""
    with pytest.raises(UserError, match=f"{where}{message}") as caught:
        check(tmp_path, {path: value}, profile)
    assert str(tmp_path / "params.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


BOTH_DIRECTIONS = {
    "translation.train.bidirectional_epochs": 3,
    "translation.train.epochs": 9,
    "translation.train.patience": None,
    "translation.vocab.joint": True,
}
TO_CHINESE = {
    "translation.tokenize.source": "en",
    "translation.tokenize.target": "zh",
    "translation.tokenize.kind": "none",
    "translation.download.source": "hub",
    "translation.download.languages": ["en", "zh"],
}
TOGETHER = [
    (BOTH_DIRECTIONS, {"train.r_drop": 1.0, "train.simcut": 1.0}, r"r_drop and simcut .* must be 0"),
    (BOTH_DIRECTIONS, {"train.epochs": 3}, r"bidirectional_epochs \(3\) must be below epochs \(3\)"),
    (BOTH_DIRECTIONS, {"train.averaging": "last", "train.average_epochs": 7}, r"mean of the last .* set it to 6 at"),
    (BOTH_DIRECTIONS, {"train.patience": 3}, r"with bidirectional_epochs, .* set patience to null"),
    (BOTH_DIRECTIONS, {"train.simcut": 1.0, "train.consistency_from": 10}, r"\(10\) must be at most epochs \(9\)"),
    ({}, {"evaluate.method": "beam", "evaluate.n_best": 99}, r"n_best \(99\) must not be more than beam_size"),
    ({}, {"train.schedule": "noam", "train.warmup": 0}, r"needs a warmup"),
    ({}, {"train.r_drop": 1.0, "train.consistency_from": 2}, r"with consistency_from, .* set patience to null"),
    ({}, {"train.r_drop": 1.0, "train.patience": None, "model.attention_dropout": 0.1}, None),
    ({}, {"model.positions": "rotary", "model.head_dim": 5}, r"positions `rotary` rotates pairs .*a head has \d"),
    (TO_CHINESE, {}, None),
    (TO_CHINESE, {"tokenize.kind": "spacy"}, r"the target's kind `spacy` splits Chinese into"),
]


@pytest.mark.parametrize(("settings", "changes", "message"), TOGETHER)
def test_so_are_parameters_of_translation_that_do_not_fit_together(
    settings: dict[str, Any], changes: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    every = settings | {f"translation.{name}": value for name, value in changes.items()}
    with pytest.raises(UserError, match=message) if message else nullcontext():
        check(tmp_path, every)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_a_language_model_that_generates_needs_words_that_it_can_join(objective: str, tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match=r"`language`: tokenize\.kind `spacy`")
    with refused if objective == "causal" else nullcontext():
        leaves = {"tokenize.kind": "spacy", "tokenize.language": "zh", "model.objective": objective}
        check(tmp_path, {f"language.{name}": value for name, value in leaves.items()})


@pytest.mark.parametrize("content", [b"a: [1", b"\xff\xfe\x00", b"- 1", b"", b"a: 2026-02-30"])
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
    path.write_text(re.sub(r"labels: train", f"labels: {labels}", profile_params(ROOT, DEFAULT)))
    with pytest.raises(UserError, match=r"is a (date|bytes|set) in YAML: quote it"):
        check_params(path)


def test_numbers_are_those_of_yaml_1_2_and_whole_floats_are_integers(tmp_path: Path) -> None:
    path, text = tmp_path / "params.yaml", profile_params(ROOT, DEFAULT)
    path.write_text(re.sub(r"learning_rate: \S+", "learning_rate: 1e-4", re.sub("warmup: \\S+", "warmup: 4e3", text)))
    schema: Any = open_task("translation").family.stage("train").Params
    train = stage_params(read_params(path), "translation", schema, where=path).train
    assert (train.learning_rate, train.warmup) == (1e-4, 4000)


def test_a_changed_copy_is_validated() -> None:
    """Unlike pydantic's own: a misspelt name would have no effect, in silence."""
    runtime = small_runtime()
    assert runtime.model_copy(update={"workers": 2}).workers == 2
    assert runtime.model_copy() == runtime
    with pytest.raises(UserError, match=r"changed parameters: `Runtime\.worker`: Extra inputs are not permitted"):
        runtime.model_copy(update={"worker": 2})


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 0.5, -0.5, 1.0, 1e-300, 1e308, 2**31, 2**63, -(2**63)),
    *(float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "1", "null", "\u202eabc", "a\nb", "x" * 100_000, "../../etc/passwd"),
    *([], [1], [None], ["x", "x"], [[]], [float("nan")] * 2, [0.9] * 3),
    *({}, {"x": 1}, {"kind": "transformer"}, {1: 2}, {"": {}}),
    datetime.date(2020, 1, 1),
    b"bytes",
]
SAMPLE = 600


def sections(content: dict[Any, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[Any, Any]]]:
    """The paths of all mappings, and the mappings."""
    yield path, content
    for name, value in content.items():
        if isinstance(value, dict):
            yield from sections(value, (*path, name))


def test_any_value_at_a_leaf_is_valid_or_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults, chosen = [], random.Random(0)
    for _ in range(SAMPLE):
        content = fresh_profile(profile := chosen.choice(PROFILES))
        monkeypatch.setattr("transformer.commands.check.read_params", lambda _, content=content: content)
        leaves = [(path, section, name) for path, section in sections(content) for name in section]
        (before, section, name), value = chosen.choice(leaves), chosen.choice(VALUES)
        section[name], path = value, (*before, name)
        try:
            check_params(Path(profile))
        except UserError as error:
            message = str(error)
            named = any(f"`{'.'.join(path[:end])}" in message for end in range(1, len(path) + 1))
            if named and len(message.splitlines()) == 1 and len(message) <= 500:
                continue
            faults.append(f"{profile} {path} = {value!r:.60}: {message:.200}")
        except Exception as error:
            faults.append(f"{profile} {path} = {value!r:.60}: {type(error).__name__} {error!s:.200}")
    assert faults == []


def test_an_unknown_neighbour_of_any_leaf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for profile in PROFILES:
        content = fresh_profile(profile)
        monkeypatch.setattr("transformer.commands.check.read_params", lambda _, content=content: content)
        for path, section in [*sections(content)]:
            if path[-1:] not in (("sample_rows",), ("labels",)):  # their keys are splits of the sample, or labels
                section["unheard_of"] = 1
                with pytest.raises(UserError, match="unheard_of"):
                    check_params(Path(profile))
                del section["unheard_of"]
