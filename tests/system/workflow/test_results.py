"""Results of the real workflow: figures, tables, and exported models."""

from xml.etree import ElementTree

import pytest

from tests.conftest import Clone
from tests.kit import TASKS
from transformer.core.files import read_rows, read_table
from transformer.data.vocabulary import read_vocabularies

TABLES = {
    "translation": ["duplicates.tsv", "groups.tsv", "sentences.tsv"],
    "sentiment": ["duplicates.tsv", "errors.tsv"],
    "language": ["duplicates.tsv", "samples.tsv", "unexpected.tsv"],
}


def test_figures_show_the_chosen_sentences_or_the_first_of_validation(workflow: Clone) -> None:
    rows = read_rows(workflow.root / "data/translation/tokens/validation.jsonl")
    vocabulary = read_vocabularies(workflow.root / "data/translation/vocab")["source"]
    for number, row in zip((1, 2, 3), rows, strict=False):
        path = workflow.root / f"reports/translation/figures/cross_attention_{number}.svg"
        found = [text.text for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        known = {word for word in row["source"].split() if vocabulary.tokenizer.token_to_id(word) is not None}
        assert known and known | {"<bos>", "<eos>"} <= set(found)
    names = {path.stem for path in (workflow.root / "reports/sentiment/figures").iterdir()}
    code = {"positions", "scale", "masks", "schedules"}
    assert names == {"attention", "encoder_attention_1", "pooled_attention_1"} | code


def test_export_fails_if_its_answers_differ_from_evaluates(restored: Clone) -> None:
    path = restored.root / "reports/sentiment/predictions.tsv"
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    path.unlink()  # it may be a link into DVC's cache
    other = {"negative": "positive", "positive": "negative"}
    *cells, prediction, probability = first.split("\t")
    first = "\t".join((*cells, other[prediction], probability))
    path.write_text("\n".join((header, first, *rest)) + "\n", encoding="utf-8")
    done = restored.run("python", "-m", "stages.export", "sentiment", check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("error: export@sentiment: the exported model answers")


def test_what_evaluate_writes_can_be_read(workflow: Clone) -> None:
    for task in TASKS:
        reports = workflow.root / "reports" / task
        assert sorted(path.name for path in (reports / "tables").iterdir()) == TABLES[task]
        for path in (*(reports / "tables").iterdir(), *(reports / "plots").iterdir()):
            assert all(None not in row.values() for row in read_table(path)), path
    rows = list(read_table(workflow.root / "reports/translation/tables/sentences.tsv"))
    scores = [float(row["chrf"]) for row in rows if row["split"] == "test" and row["kind"] == "worst"]
    assert len(scores) == 20 and scores == sorted(scores)
    errors = list(read_table(workflow.root / "reports/sentiment/tables/errors.tsv"))
    assert errors and all(row["label"] != row["prediction"] for row in errors)


@pytest.mark.parametrize("method", ["beam", "sample"])
def test_every_method_is_exported_as_it_was_evaluated(restored: Clone, method: str) -> None:
    restored.change({"translation.evaluate.method": method, "translation.evaluate.beam_size": 3})
    assert restored.repro("export@translation") == ["evaluate@translation", "export@translation"]
    names = [restored.root / "reports/translation" / name for name in ("evaluation.json", "predictions.tsv")]
    before = [path.read_bytes() for path in names]
    restored.change({"translation.evaluate.batch_size": 3})
    restored.repro("evaluate@translation")
    assert [path.read_bytes() for path in names] == before
