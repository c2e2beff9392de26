"""What `download` writes: rows, provenance, and the splits that are held out of train."""

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from tests.data.cases import (
    content,
    json_lines,
    judge,
    labelled,
    pairs,
    parallel,
    params,
    provenance,
    reviews,
    stored,
    translate,
    write,
)
from transformer.core.errors import UserError
from transformer.data.corpus import LONGEST_FIELD
from transformer.families.seq2seq.download import Params


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "out").iterdir()) if (tmp_path / "out").exists() else []


def test_the_output_is_the_same_bytes_wherever_the_files_lie(tmp_path: Path) -> None:
    first = translate(tmp_path / "a", path=parallel(tmp_path / "in", test_own=pairs(2)))
    write(tmp_path / "b" / "out" / ".corpus.part", {"junk.jsonl": b"{"})  # of a killed run
    second = translate(tmp_path / "b", path=parallel(tmp_path / "elsewhere" / "in", test_own=pairs(2)))
    assert content(first) == content(second) and left(tmp_path / "b") == [second]
    assert str(tmp_path) not in (first / "provenance.json").read_text()
    line = (first / "train.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert line == '{"de": "Satz 0 über Ähren.", "en": "Sentence Satz 0."}'
    found, names = provenance(first), ("train", "val", "test", "test_own")
    assert found["files"] == {{"val": "validation"}.get(name, name): [f"{name}.jsonl"] for name in names}
    assert found["rows"] == {"train": 9, "validation": 3, "test": 4, "test_own": 2}
    for split, checksum in found["sha256"].items():
        assert checksum == sha256((first / f"{split}.jsonl").read_bytes()).hexdigest()


def test_the_checksum_is_over_the_rows_of_the_three_splits_in_any_order(tmp_path: Path) -> None:
    def checksum(name: str, **changed: list[dict[str, Any]]) -> str:
        path = parallel(tmp_path / name, **changed)
        return str(provenance(translate(tmp_path / name, path=path))["content_sha256"])

    expected = checksum("a")
    assert checksum("b", train=pairs(9)[::-1], test_own=pairs(1)) == expected
    changes = [{"train": pairs(8)}, {"train": pairs(9) + pairs(1)}, {"val": pairs(4), "test": pairs(3)}]
    assert expected not in [checksum(f"c{number}", **change) for number, change in enumerate(changes)]
    before = content(translate(tmp_path, path=str(tmp_path / "a"), expected_sha256=expected))
    with pytest.raises(UserError, match=f"content_sha256 is [0-9a-f]{{64}}, expected {expected}"):
        translate(tmp_path, path=str(tmp_path / "c0"), expected_sha256=expected)
    assert left(tmp_path) == [tmp_path / "out" / "corpus"] and content(tmp_path / "out" / "corpus") == before


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"de": "x"}, "`en` is missing"),
        ({"de": "\u200b \u2060", "en": "x"}, "`de` is empty"),
        ({"de": "x", "en": None}, "`en` must be text, not NoneType"),
        ({"de": "a\0b", "en": "x"}, "`de` has a NUL character"),
        ({"de": "a\ud800", "en": "x"}, r"`de` has a lone surrogate, U\+D800"),
        ({"de": "a" * (LONGEST_FIELD + 1), "en": "x"}, "`de` has more than 10,000,000 characters: split the text"),
    ],
)
def test_a_bad_pair_is_named_and_nothing_is_left(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = parallel(tmp_path / "in")
    Path(path, "test.jsonl").write_text(f"{json.dumps(row)}\n")
    with pytest.raises(UserError, match=f"test.jsonl, line 1: {says}"):
        translate(tmp_path, path=path)
    assert not left(tmp_path)


def test_a_row_is_one_line_for_every_reader(tmp_path: Path) -> None:
    row = {"de": "\t ein\nzwei\r\n\x85drei\u2028vier ", "en": "a  b\u00a0c"}
    output = translate(tmp_path, path=parallel(tmp_path / "in", test=[row]))
    assert stored(output, "test") == [{"de": "ein zwei drei vier", "en": "a  b\u00a0c"}]
    assert len((output / "test.jsonl").read_text().splitlines()) == 1


def test_train_is_the_one_split_that_must_be_there(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in", train=pairs(60))
    for split in ("test", "val"):
        (tmp_path / "in" / f"{split}.jsonl").unlink()
        assert set(provenance(translate(tmp_path, path=path))["rows"]) == {"train", "validation", "test"}
    parallel(tmp_path / "in")
    (tmp_path / "in" / "train.jsonl").unlink()
    with pytest.raises(UserError, match=f"{path} has no split `train"):
        translate(tmp_path, path=path)
    with pytest.raises(UserError, match="`test` has no rows"):
        translate(tmp_path, path=parallel(tmp_path / "in", test=[]))


@pytest.mark.parametrize(
    ("name", "value"),
    [("languages", ["de", "de"]), ("languages", ["de", "../en"]), ("revision", "main"), ("repository", "../up")],
)
def test_parameters_out_of_range(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Params.model_validate(params("translation", **{name: value}))


def test_validation_is_held_out_of_train_by_label(tmp_path: Path) -> None:
    output = judge(tmp_path, path=labelled(tmp_path / "in"))
    train, validation = stored(output, "train"), stored(output, "validation")
    assert Counter(row["label"] for row in validation) == {0: 10, 1: 10}
    rows = reviews(100)
    assert train == [row for row in rows if row not in validation]
    assert validation == [row for row in rows if row not in train]
    assert stored(output, "test") == reviews(6, "test film")


def test_the_seed_draws_what_is_held_out_and_neither_order_nor_repeats_of_rows_do(tmp_path: Path) -> None:
    def held_out(name: str, seed: int, rows: list[dict[str, Any]]) -> set[str]:
        output = judge(tmp_path / name, path=labelled(tmp_path / name, train=rows), seed=seed)
        train, validation = ({row["text"] for row in stored(output, split)} for split in ("train", "validation"))
        assert not train & validation
        return validation

    first = held_out("a", 1, reviews(100))
    assert held_out("b", 1, reviews(100)[::-1]) == held_out("c", 1, reviews(100) * 2) == first
    assert held_out("d", 2, reviews(100)) != first


def test_neighbours_are_held_out_together(tmp_path: Path) -> None:
    """The blocks are those of the source, whatever was left out or held out before."""
    rows = reviews(1000)
    lines = b"no json\n" + json_lines(rows[1:])
    output = judge(
        tmp_path, path=str(write(tmp_path / "in", {"train.jsonl": lines})), bad_rows="skip", validation_block=50
    )
    blocks = [rows[max(start, 1) : start + 50] for start in range(0, len(rows), 50)]
    for split in ("validation", "test"):
        held_out = stored(output, split)
        chosen = [number for number, block in enumerate(blocks) if block[0] in held_out]
        assert held_out == [row for number in chosen for row in blocks[number]]
        assert len(chosen) in (2, 4) and chosen[0] > 0, "not just the first ones"


def test_of_few_rows_one_is_held_out(tmp_path: Path) -> None:
    """Of a label's two, where the fraction says less than half of one."""
    output = judge(tmp_path, path=labelled(tmp_path / "in", train=reviews(4)), validation_fraction=0.1)
    for split in ("train", "validation"):
        assert sorted(row["label"] for row in stored(output, split)) == [0, 1]
    with pytest.raises(UserError, match="1 row with the label 0: too few or too alike"):
        judge(tmp_path, path=labelled(tmp_path / "in", train=reviews(2)))


def test_an_unlabelled_text_like_one_that_the_model_is_judged_by_is_left_out(tmp_path: Path) -> None:
    """But for case and punctuation, or for a word; a training text may be among them."""
    long = "this film has a plot that goes nowhere and a cast that does not seem to mind"
    test, dev = f"{long} at all on a rainy day in the north.", f"{long} very much and a score by somebody else."
    texts = [test.upper(), dev.replace("somebody", "anybody"), "A film 3.", "Who knows?"]
    path = labelled(
        tmp_path / "in",
        test=[*reviews(4, "test film"), {"label": 1, "text": test}],
        dev=[*reviews(4, "dev film"), {"label": 0, "text": dev}],
        unsupervised=[{"text": text} | ({"label": -1} if "1" in text else {}) for text in texts],
    )
    output = judge(tmp_path, path=path, unsupervised=True)
    assert [row["text"] for row in stored(output, "unsupervised")] == texts[2:]
    [found] = provenance(output)["left_out"].values()
    assert found == {"equals or nearly equals a text of validation or test": 2}
    assert "unsupervised.jsonl" not in content(judge(tmp_path, path=path))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_unlabelled_texts_need_no_column_of_labels(kind: str, tmp_path: Path) -> None:
    path, frame = labelled(tmp_path / "in"), pd.DataFrame({"text": ["one text", "another text"]})
    file = Path(path, f"unsupervised.{kind}")
    frame.to_csv(file, index=False) if kind == "csv" else frame.to_parquet(file)
    output = judge(tmp_path, path=path, unsupervised=True)
    assert stored(output, "unsupervised") == [{"label": -1, "text": text} for text in frame["text"]]
    file.rename(Path(path, f"test.{kind}"))
    with pytest.raises(UserError, match="label"):
        judge(tmp_path, path=path)


@pytest.mark.parametrize(
    ("unlabelled", "message"),
    [
        ({"unsupervised": [{"label": -1, "text": "A seen 1."}]}, r"every row equals or nearly equals .* set `unsuperv"),
        ({"unsupervised": reviews(2)}, r"unsupervised\.jsonl, line 1: the label must be -1, not 0"),
        ({}, "no split `unsupervised`"),
    ],
)
def test_unlabelled_texts_that_cannot_be_used(unlabelled: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = labelled(tmp_path / "in", test=reviews(4, "seen"), **unlabelled)
    with pytest.raises(UserError, match=message):
        judge(tmp_path, path=path, unsupervised=True)


def test_the_sample_has_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    output = judge(tmp_path, source="sample")
    assert provenance(output)["rows"] == {"train": 30, "validation": 10, "test": 10}
    assert [*provenance(output)["labels"]["train"]] == ["negative", "positive"]
    counts = {"train": 20, "validation": 10, "test": 10}
    assert stored(judge(tmp_path / "b", source="sample", sample_rows=counts), "train") == stored(output, "train")[:20]
    with pytest.raises(UserError, match=r"^sample_rows.test is 5,001, but .*/test.jsonl.gz has [15],?00+ rows"):
        judge(tmp_path, source="sample", sample_rows=counts | {"test": 5001})
