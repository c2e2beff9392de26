"""The names of rows and of registered models."""

from typing import Any

from tests.kit import ROOT, fresh_profile
from transformer.commands.profiles import DEFAULT
from transformer.registry import TASKS
from transformer.results.chain import Chain, Stage
from transformer.results.naming import registered_name, row_name
from transformer.tracking.model import versions_of
from transformer.tracking.store import Store

PAIR = {"source": "fr", "target": "en"}


def chain_of(task: str, *, name: str | None = None, tokenize: dict[str, Any], **download: Any) -> Chain:
    sections = {"download": download, "tokenize": tokenize, "export": {"registered_name": name, "alias": "best"}}
    stages = (
        Stage(stage, {"params.yaml": {f"{task}.{stage}": values}}, deps={}, outs={})
        for stage, values in sections.items()
    )
    return Chain(task, tuple(stages))


def test_the_name_follows_task_languages_and_corpus() -> None:
    """Settings of sources that are not in use have no effect."""
    download = {"path": "../mine/mycorpus/", "repository": "someone/multi30k"}
    names = [
        registered_name(chain_of("translation", tokenize=PAIR, source=source, **download))
        for source in ("sample", "hub", "files")
    ]
    assert names == ["translation-fr-en-sample", "translation-fr-en-multi30k", "translation-fr-en-mycorpus"]
    assert registered_name(chain_of("sentiment", tokenize={"language": "en"}, source="hub", repository="imdb")) == (
        "sentiment-imdb"
    )
    glue = {"source": "hub", "repository": "nyu-mll/glue"}
    names = [registered_name(chain_of("sentiment", tokenize={}, configuration=each, **glue)) for each in ("sst2", None)]
    assert names == ["sentiment-glue-sst2", "sentiment-glue"]


def test_a_rows_name_has_its_languages() -> None:
    pair = chain_of("translation", tokenize=PAIR, source="sample")
    assert row_name(pair) == f"translation fr-en {pair.row_key()[:8]}"
    assert row_name(pair, "d_model=8") == f"fr-en d_model=8 {pair.row_key()[:8]}"
    reviews = chain_of("sentiment", tokenize={"language": "en"}, source="sample")
    assert row_name(reviews) == f"sentiment {reviews.row_key()[:8]}"
    assert row_name(reviews, "d_model=8") == f"d_model=8 {reviews.row_key()[:8]}"


def test_a_given_name_is_taken() -> None:
    assert registered_name(chain_of("translation", name="mine", tokenize=PAIR, source="sample")) == "mine"


def test_no_profile_fixes_the_name() -> None:
    for name in [DEFAULT, *(path.stem for path in (ROOT / "profiles").glob("*.yaml"))]:
        values = fresh_profile(name)
        assert {values[task]["export"]["registered_name"] for task in TASKS} == {None}


def test_odd_folders_make_names_that_mlflow_takes(store: Store) -> None:
    expected = {
        "a: b/c d's 100%": "c-d-s-100",
        "données": "données",
        "x" * 300: "x" * 100,
        "/": "local",
        "a\n\t:": "a",
    }
    for folder, corpus in expected.items():
        name = registered_name(chain_of("sentiment", tokenize={}, source="files", path=folder))
        assert name == f"sentiment-{corpus}"
        store.client.create_registered_model(name)
        assert versions_of(store.client, name, "none") == []
