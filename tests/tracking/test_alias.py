"""Which version gets the alias, in real registries."""

import json
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.tracking.test_naming import PAIR, chain_of
from transformer.results.origin import Origin
from transformer.tracking.alias import (
    Entry,
    entry_of,
    holder,
    moved_in_words,
    place_aliases,
    version_tags,
)
from transformer.tracking.model import register, versions_of
from transformer.tracking.store import Store

ALIAS = {"alias": "best"}
FIRST = Entry(
    row_key="a",
    metric="validation.accuracy",
    value=0.5,
    higher_is_better=True,
    validation="0" * 64,
    direction="",
    settings="",
    made=100,
)


def entry(key: str, value: float, made: int, **different: Any) -> Entry:
    return replace(FIRST, row_key=key, value=value, made=made, **different)


def add(store: Store, name: str, entry: Entry, tags: dict[str, str] | None = None, run: str | None = None) -> str:
    """Register a version with its own run, or with `run`; returns the run."""
    run = run or str(store.client.create_run(store.experiment_id).info.run_id)
    model = store.client.create_logged_model(store.experiment_id, source_run_id=run).model_id
    tags = entry.tags() | ALIAS if tags is None else tags
    register(store.client, name=name, alias="best", tags=tags, run_id=run, model_id=model)
    return run


def best(store: Store, name: str) -> str | None:
    held = store.client.get_registered_model(name).aliases.get("best")
    return None if held is None else store.client.get_model_version(name, str(held)).tags["row_key"]


def test_the_alias_moves_to_a_better_version_only(store: Store) -> None:
    steps = [("a", 0.5, "a"), ("b", 0.4, "a"), ("c", 0.6, "c"), ("d", 0.6, "c"), ("d", 0.6, "c")]
    runs: dict[str, str] = {}
    for made, (key, value, expected) in enumerate(steps):
        runs[key] = add(store, "reviews", entry(key, value, min(made, 3)), run=runs.get(key))
        assert best(store, "reviews") == expected
    assert len([*store.client.search_model_versions("name = 'reviews'")]) == 4
    (version,) = versions_of(store.client, "reviews", "d")
    assert Entry.read(version.tags) == entry("d", 0.6, 3)


def test_a_version_competes_for_its_own_alias_alone(store: Store) -> None:
    """`export.alias: candidate` of an experiment leaves `best` where it is, also after a `sync`."""
    add(store, "reviews", entry("a", 0.5, 1))
    other = entry("b", 0.6, 2)
    add(store, "reviews", other, tags=other.tags() | {"alias": "candidate"})
    place_aliases(store.client)
    held = store.client.get_registered_model("reviews").aliases
    assert best(store, "reviews") == "a" and {*held} == {"best", "candidate"} and len({*held.values()}) == 2


def test_lower_may_be_better(store: Store) -> None:
    for made, (key, value, expected) in enumerate([("a", 0.5, "a"), ("b", 0.6, "a"), ("c", 0.4, "c")]):
        add(store, "losses", replace(entry(key, value, made), higher_is_better=False))
        assert best(store, "losses") == expected


@pytest.mark.parametrize(
    "different",
    [
        {"validation": "1" * 64},
        {"direction": "en-de"},
        {"metric": "validation.chrf"},
        {"settings": "tok:13a"},
    ],
    ids=lambda different: next(iter(different)),
)
def test_what_was_scored_otherwise_does_not_compete(store: Store, different: dict[str, str]) -> None:
    """76 BLEU on the sample corpus must not beat a real model's 43 forever."""
    add(store, "captions", entry("sample", 76, 1))
    sample = holder(store.client, "captions", "best")
    add(store, "captions", entry("real", 43, 2, **different))
    assert best(store, "captions") == "real"
    real = holder(store.client, "captions", "best")
    said = moved_in_words(sample, real, "best")
    assert re.match(r"captions@best moved from version 1 to 2, whose (\w|'| )+ are others, so their", said)
    add(store, "captions", entry("worse", 42, 3, **different))
    assert best(store, "captions") == "real"
    assert moved_in_words(real, holder(store.client, "captions", "best"), "best") == ""
    add(store, "captions", entry("sample again", 70, 4))
    assert best(store, "captions") == "sample"
    assert moved_in_words(None, sample, "best") == moved_in_words(sample, None, "best") == ""
    assert holder(store.client, "nothing", "best") is holder(store.client, "captions", "other") is None


def test_the_order_of_registration_changes_nothing(store: Store) -> None:
    """As when a lost database is rebuilt, or two clones share one. Ties: the earliest gets it."""
    results = [
        entry("a", 0.7, 1),
        entry("b", 0.9, 2, validation="1" * 64),
        entry("c", 0.7, 3),
        entry("d", 0.6, 3),
    ]
    for number, order in enumerate([*permutations(results)][::5]):
        for result in order:
            add(store, f"order-{number}", result)
        assert best(store, f"order-{number}") == "a"


def test_versions_of_deleted_rows_do_not_count(store: Store) -> None:
    runs = {
        key: add(store, "reviews", result)
        for key, result in {
            "a": entry("a", 0.5, 1),
            "b": entry("b", 0.9, 2),
            "c": entry("c", 0.8, 3),
            "other": entry("other", 0.1, 4, validation="1" * 64),
        }.items()
    }
    assert best(store, "reviews") == "other"
    store.client.delete_run(runs["other"])
    place_aliases(store.client)
    assert best(store, "reviews") == "b"
    store.client.delete_run(runs["b"])
    place_aliases(store.client)
    assert best(store, "reviews") == "c"
    store.client._tracking_client.store._hard_delete_run(runs["c"])  # like `mlflow gc`
    place_aliases(store.client)
    assert best(store, "reviews") == "a"
    store.client.delete_run(runs["a"])
    place_aliases(store.client)
    assert best(store, "reviews") is None
    store.client.restore_run(runs["a"])
    place_aliases(store.client)
    assert best(store, "reviews") == "a"


def test_a_row_that_was_deleted_and_written_again_has_a_version_again(store: Store) -> None:
    store.client.delete_run(add(store, "reviews", entry("a", 0.5, 1)))
    run = add(store, "reviews", entry("a", 0.5, 1))
    assert [version.run_id for version in versions_of(store.client, "reviews", "a")].count(run) == 1
    assert store.client.get_model_version_by_alias("reviews", "best").run_id == run
    add(store, "reviews", entry("a", 0.5, 1), run=run)
    assert len(versions_of(store.client, "reviews", "a")) == 2, "once per run"


def test_other_models_of_a_shared_registry_are_left_alone(store: Store) -> None:
    store.client.create_registered_model("someone's")
    add(store, "theirs", FIRST, tags={"validation.accuracy": "1"} | {"row_key": "x"})
    store.client.set_registered_model_alias("theirs", "best", "1")
    add(store, "ours", FIRST)
    store.client.set_registered_model_alias("ours", "champion", "1")
    place_aliases(store.client)
    assert store.client.get_registered_model("theirs").aliases.keys() == {"best"}
    assert store.client.get_registered_model("ours").aliases.keys() == {"best", "champion"}


def test_the_tags_say_what_a_version_competes_on(tmp_path: Path) -> None:
    """The library's version and the decoding parameters are not part of it."""

    def of(signature: str, **evaluate: int) -> Entry:
        files = {
            "models/translation/bundle/config.json": {
                "main_metric": {"name": "validation.bleu", "value": 43.0, "higher_is_better": True},
                "decoding": evaluate,
            },
            "data/translation/corpus/provenance.json": {"sha256": {"validation": "ab", "test": "cd"}},
            "reports/translation/evaluation.json": {"signatures": {"bleu": signature, "chrf": "nc:6"}},
        }
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(json.dumps(content))
        return entry_of(chain, Origin(None, None, 7), tmp_path)

    chain = chain_of("translation", tokenize=PAIR, source="sample")
    found = of("nrefs:1|case:lc|tok:none|version:2.5.1")
    assert found.group == ("ab", "fr-en", "validation.bleu", "nrefs:1|case:lc|tok:none")
    assert (found.value, found.made, found.row_key) == (43.0, 7, chain.row_key())
    assert of("nrefs:1|case:lc|tok:none|version:2.6.0", beam_size=5) == found
    assert of("nrefs:1|case:lc|tok:13a|version:2.5.1").group != found.group
    assert Entry.read(version_tags(chain, found)) == found
    assert version_tags(chain, found)["alias"] == "best"


@pytest.mark.parametrize("broken", [{"validation.accuracy": "nan"}, {"made": "soon"}, {"metric": "validation.f1"}])
def test_broken_tags_are_no_entry(broken: dict[str, str]) -> None:
    assert Entry.read(FIRST.tags() | broken) is None
