import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.cases import REVISION, json_lines, pairs, reviews, sentiment, stored, translation
from tests.data.hub_server import Hub, download, serve

PAIRS = {"train": pairs(60), "validation": pairs(10, "Wert"), "test": pairs(8, "Probe")}
IMDB_CARD = """---
pretty_name: IMDB
configs:
- config_name: plain_text
  data_files:
  - split: train
    path: plain_text/train-*
  - split: test
    path: plain_text/test-*
  - split: unsupervised
    path: plain_text/unsupervised-*
  default: true
dataset_info:
  config_name: plain_text
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': neg
          '1': pos
---
"""


def multi30k() -> dict[str, bytes]:
    """The files of the data set on the Hub."""
    names = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}
    card = b"---\ntask_categories:\n- translation\nlanguage:\n- en\n- de\n---\n"
    return {"README.md": card, **{names[split]: json_lines(rows) for split, rows in PAIRS.items()}}


def imdb(card: str = IMDB_CARD) -> dict[str, bytes]:
    """The files of the data set on the Hub."""
    unlabelled = [{"label": -1, "text": f"Nobody judged {number}."} for number in range(6)]
    splits = {"train": reviews(40), "test": reviews(10, "test film"), "unsupervised": unlabelled}
    files = {f"plain_text/{split}-00000-of-00001.parquet": parquet(rows) for split, rows in splits.items()}
    return {"README.md": card.encode(), **files}


def parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema({"text": pa.string(), "label": pa.int64()})), stream)
    return stream.getvalue()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve(Hub("owner/corpus", REVISION, multi30k())) as running:
        yield running


def run(hub: Hub, tmp_path: Path, params: dict[str, Any], task: str = "translation") -> CompletedProcess[str]:
    params["download"]["source"] = "hub"
    return download(task, params, output=tmp_path / "out" / "corpus", endpoint=hub.endpoint, home=tmp_path / "home")


def refused(result: CompletedProcess[str], tmp_path: Path) -> str:
    """The one-line message of a UserError, which leaves no files behind."""
    print(result.stderr)
    assert result.returncode == 1, result.stderr
    assert re.fullmatch(r"UserError: [^\n]+\n", result.stderr), result.stderr
    assert not result.stdout
    assert not list((tmp_path / "out").glob("*"))
    assert not list((tmp_path / "out").glob(".*"))
    return result.stderr


def test_the_hub_gives_the_translation_corpus(hub: Hub, tmp_path: Path) -> None:
    result = run(hub, tmp_path, translation())
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    assert json.loads(result.stdout) == {"train_rows": 60, "validation_rows": 10, "test_rows": 8}
    output = tmp_path / "out" / "corpus"
    assert {split: stored(output, split) for split in PAIRS} == PAIRS
    provenance = json.loads((output / "provenance.json").read_bytes())
    assert (provenance["source"], provenance["repository"]) == ("hub", "owner/corpus")
    assert provenance["revision"] == REVISION
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["corpus"]


def test_the_hub_gives_the_sentiment_corpus(hub: Hub, tmp_path: Path) -> None:
    hub.files = imdb()
    result = run(hub, tmp_path, sentiment(unsupervised=True), "sentiment")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "train_rows": 32, "validation_rows": 8, "test_rows": 10, "unsupervised_rows": 6,
    }  # fmt: skip
    output = tmp_path / "out" / "corpus"
    assert stored(output, "test") == reviews(10, "test film")
    assert sorted(stored(output, "train") + stored(output, "validation"), key=str) == sorted(reviews(40), key=str)


@pytest.mark.parametrize(
    ("names", "labels", "first"), [(("pos", "neg"), ["neg", "pos"], 1), (("spam", "ham"), "train", 1)]
)
def test_the_hubs_own_names_of_labels_count(
    hub: Hub, tmp_path: Path, names: tuple[str, str], labels: Any, first: int
) -> None:
    """first: the class of the rows whose number is 0. Other names: test_labels.py."""
    card = IMDB_CARD.replace("'0': neg", f"'0': {names[0]}").replace("'1': pos", f"'1': {names[1]}")
    hub.files = imdb(card)
    result = run(hub, tmp_path, sentiment(labels=labels, unsupervised=True), "sentiment")
    assert result.returncode == 0, result.stderr
    output = tmp_path / "out" / "corpus"
    given = {row["text"]: row["label"] for row in reviews(10, "test film")}
    assert {(given[row["text"]], row["label"]) for row in stored(output, "test")} == {(0, first), (1, 1 - first)}
    if labels == "train":
        assert json.loads((output / "labels.json").read_bytes()) == ["ham", "spam"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_split_dev_is_validation_as_in_local_files(hub: Hub, tmp_path: Path, beside: bool) -> None:
    """Beside one that is called validation it is just another split."""
    renamed = "  - split: validation\n    path: plain_text/test-*\n" * beside + "  - split: dev\n"
    card = IMDB_CARD.replace("  - split: unsupervised\n", renamed).replace("unsupervised-*", "test-*")
    hub.files = imdb(card)
    result = run(hub, tmp_path, sentiment(), "sentiment")
    assert result.returncode == 0, result.stderr
    found = {"train_rows": 40, "validation_rows": 10, "test_rows": 10}
    assert json.loads(result.stdout) == found | ({"dev_rows": 10} if beside else {})


def test_a_split_of_any_name_keeps_its_rows(hub: Hub, tmp_path: Path) -> None:
    """Also one called `added`, as are the rows of `download.added`."""
    card = IMDB_CARD.replace("split: unsupervised", "split: added").replace("unsupervised-*", "test-*")
    hub.files = imdb(card)
    result = run(hub, tmp_path, sentiment(), "sentiment")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["added_rows"] == 10
    assert stored(tmp_path / "out" / "corpus", "added") == reviews(10, "test film")


def two_configurations(default: str = "") -> dict[str, bytes]:
    """The files of a data set of two pairs of languages, the columns in a mapping, as OPUS-100 has them."""
    names = ("de-en", "fr-en")
    card = "".join(
        f"- config_name: {name}\n{'  default: true' * (name == default)}\n  data_files:\n"
        + "".join(f"  - split: {split}\n    path: {name}/{split}.jsonl\n" for split in PAIRS)
        for name in names
    )
    files = {"README.md": f"---\nconfigs:\n{card}---\n".encode()}
    for name in names:
        for split, rows in PAIRS.items():
            texts = [{"translation": {"en": row["en"], name[:2]: f"{name} {row['de']}"}} for row in rows]
            files[f"{name}/{split}.jsonl"] = json_lines(texts)
    return files


@pytest.mark.parametrize(("configuration", "default"), [("de-en", ""), (None, "de-en")])
def test_one_of_several_configurations(hub: Hub, tmp_path: Path, configuration: str | None, default: str) -> None:
    hub.files = two_configurations(default)
    result = run(hub, tmp_path, translation(configuration=configuration))
    assert result.returncode == 0, result.stderr
    output = tmp_path / "out" / "corpus"
    assert stored(output, "test") == [{**row, "de": f"de-en {row['de']}"} for row in PAIRS["test"]]
    assert json.loads((output / "provenance.json").read_bytes()).get("configuration") == configuration


@pytest.mark.parametrize(
    ("configuration", "fault"), [(None, "several configurations"), ("it-en", "no configuration it-en")]
)
def test_a_configuration_that_is_not_there(hub: Hub, tmp_path: Path, configuration: str | None, fault: str) -> None:
    hub.files = two_configurations()
    message = refused(run(hub, tmp_path, translation(configuration=configuration)), tmp_path)
    assert f"owner/corpus on the Hub has {fault}: set `configuration` to de-en, fr-en" in message


def test_an_unreachable_hub_names_the_ways_out_soon(tmp_path: Path) -> None:
    with serve(Hub("owner/corpus", REVISION, multi30k())) as stopped:
        pass
    start = time.monotonic()
    message = refused(run(stopped, tmp_path, translation()), tmp_path)
    assert time.monotonic() - start < 20
    assert all(way in message for way in ("`source: files`", "DATA=path", "`source: sample`", "HF_ENDPOINT"))


def test_an_unknown_data_set(hub: Hub, tmp_path: Path) -> None:
    assert "nobody/nothing" in refused(run(hub, tmp_path, translation(repository="nobody/nothing")), tmp_path)


def test_an_unknown_revision(hub: Hub, tmp_path: Path) -> None:
    message = refused(run(hub, tmp_path, translation(revision="0" * 40)), tmp_path)
    assert f"owner/corpus at {'0' * 40}" in message
    assert "RevisionNotFound" in message


def test_a_missing_split(hub: Hub, tmp_path: Path) -> None:
    del hub.files["train.jsonl"]
    assert "owner/corpus on the Hub has no split `train`" in refused(run(hub, tmp_path, translation()), tmp_path)


def test_a_missing_column(hub: Hub, tmp_path: Path) -> None:
    message = refused(run(hub, tmp_path, translation(languages=["de", "fr"])), tmp_path)
    assert "no column `fr` on the Hub (it has: de, en)" in message


@pytest.mark.parametrize("name", ["train.jsonl", pytest.param("test.jsonl", marks=pytest.mark.stress)])
def test_a_transfer_that_breaks_off(hub: Hub, tmp_path: Path, name: str) -> None:
    hub.truncated = {name}
    assert "cannot load owner/corpus" in refused(run(hub, tmp_path, translation()), tmp_path)


def test_a_truncated_json_file(hub: Hub, tmp_path: Path) -> None:
    hub.files["test.jsonl"] = hub.files["test.jsonl"][:-20]
    assert "cannot load owner/corpus" in refused(run(hub, tmp_path, translation()), tmp_path)


def test_a_truncated_parquet_file(hub: Hub, tmp_path: Path) -> None:
    hub.files = imdb()
    name = "plain_text/train-00000-of-00001.parquet"
    hub.files[name] = hub.files[name][:-100]
    assert "cannot load owner/corpus" in refused(run(hub, tmp_path, sentiment(), "sentiment"), tmp_path)


def test_bad_utf8(hub: Hub, tmp_path: Path) -> None:
    hub.files["train.jsonl"] = hub.files["train.jsonl"].replace("Ä".encode(), b"\xff", 1)
    message = refused(run(hub, tmp_path, translation()), tmp_path)
    assert "owner/corpus, train, row 1: not UTF-8" in message


def test_an_empty_side(hub: Hub, tmp_path: Path) -> None:
    hub.files["test.jsonl"] += json_lines([{"de": "Ohne Gegenstück.", "en": " "}])
    assert "owner/corpus, test, row 9: `en` is empty" in refused(run(hub, tmp_path, translation()), tmp_path)


def test_a_wrong_checksum(hub: Hub, tmp_path: Path) -> None:
    message = refused(run(hub, tmp_path, translation(expected_sha256="0" * 64)), tmp_path)
    assert f"expected {'0' * 64}" in message


def test_a_commit_that_cannot_be_read_is_not_answered_with_another_from_the_cache(hub: Hub, tmp_path: Path) -> None:
    assert run(hub, tmp_path, translation()).returncode == 0
    hub.revision, hub.files = "1" * 40, {}
    result = run(hub, tmp_path, translation(revision=hub.revision))
    assert "cannot load owner/corpus at 1111" in result.stderr
    provenance = json.loads((tmp_path / "out" / "corpus" / "provenance.json").read_bytes())
    assert provenance["revision"] == REVISION


def test_nothing_but_the_data_set_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    assert run(hub, tmp_path, translation()).returncode == 0
    assert all("/owner/corpus" in request for request in hub.requests), hub.requests
