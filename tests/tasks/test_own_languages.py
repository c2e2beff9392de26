"""Languages without a spaCy tokenizer, through the stages from the files to the scores."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.stages import Stages
from transformer.commands.summary import scores_table
from transformer.core.errors import UserError
from transformer.core.task import open_task
from transformer.evaluation.headline import TEXT_BLEUS, headline, metric_label
from transformer.families.seq2seq.report import TranslationReporting
from transformer.reporting.result import Files

SENTENCES = {
    "fr": "L'homme s'assoit sur l'herbe, numéro {} ?",
    "sw": "Mwanamume analala kwenye benchi, namba {}.",
    "ja": "男の人がベンチで寝ている、{}番。",
    "ko": "한 남자가 벤치에서 자고 있다, {}번.",
    "th": "ผู้ชายคนหนึ่งนอนอยู่บนม้านั่ง หมายเลข {}",
    "zh": "一个男人睡在长椅上，{}号。",
}
"""Without MeCab."""


def evaluated(folder: Path, language: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """evaluation.json of a tiny model from English to `language`."""
    corpus = folder / "given"
    corpus.mkdir()
    for split in ("train", "val", "test"):
        for side, text in (("en", "A man sleeps on a bench, number {}."), (language, SENTENCES[language])):
            lines = "".join(f"{text.format(number)}\n" for number in range(24))
            (corpus / f"{split}.{side}").write_text(lines, encoding="utf-8")
    changes: dict[str, Any] = {"download.source": "files", "download.path": str(corpus)}
    changes |= {"download.languages": ["en", language], "tokenize.source": "en", "tokenize.target": language}
    changes |= {"tokenize.kind": kind, "train.epochs": 1, "evaluate.bootstrap_samples": 0, "evaluate.max_length": 8}
    changes |= {"vocab.kind": "bpe", "vocab.max_size": 200} if kind == "none" else {}
    stages = Stages(folder, "translation", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train", "evaluate")
    content: dict[str, Any] = json.loads((stages.reports / "evaluation.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("sw", "13a"), ("ja", "char"), ("ko", "13a"), ("th", "char"), ("zh", "zh")]
)
def test_a_language_without_spacys_rules_is_scored(
    language: str, tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "whitespace" if tokenizer == "13a" else "none"
    if find_spec({"ja": "MeCab", "ko": "mecab_ko"}.get(language, "none")):
        pytest.skip("MeCab is installed here, and chosen")
    evaluation = evaluated(tmp_path, language, kind, monkeypatch)
    signatures = evaluation["signatures"]
    by_text = [name for name in evaluation["test"] if name in TEXT_BLEUS]
    assert by_text == [f"bleu_{tokenizer}_lowercased"]
    assert f"tok:{tokenizer}|" in signatures[by_text[0]]
    spacys = language == "zh"  # spaCy splits Chinese into characters
    assert f"tok:{'none' if spacys else tokenizer}|" in signatures["bleu"]
    assert signatures["perplexity"].startswith("vocabulary:")
    assert f"|split:{kind}|lowercase:True" in signatures["perplexity"]
    # Each number occurs once in train, where a word has to occur twice.
    assert (evaluation["test"]["unknown_rate"] > 0) == (kind != "none")
    assert "attainable_bleu" not in evaluation["test"]
    first = "BLEU" if tokenizer == "13a" else "chrF"
    assert headline("bleu", evaluation).casefold().startswith(first.casefold())
    assert scores_table("translation", evaluation).split("\n")[0].split("intervals")[1].split()[0] == first
    (table,) = next(TranslationReporting().sections(open_task("translation"), Files(tmp_path, "translation"))).tables
    assert table.header[1] == first and metric_label(by_text[0]) in table.header
    examples = [*TranslationReporting().texts_with_answers(open_task("translation"), Files(tmp_path, "translation"))]
    assert [each.title.partition(",")[0] for each in examples] == ["worst", "median", "median"]
    assert {name for each in examples for name, _ in each.fields} == {"source", "translation", "reference"}


def test_a_language_whose_tokens_are_joined_otherwise_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perfect translation into French, joined as English is written, is not what the references are."""
    evaluation = evaluated(tmp_path, "fr", "spacy", monkeypatch)
    attainable = evaluation["test"]["attainable_bleu"]
    assert 0 < attainable < 50
    lines = [*TranslationReporting().weaknesses(open_task("translation"), Files(tmp_path, "translation"))]
    assert any(f"A perfect translation would have {attainable:.1f} BLEU" in line for line in lines)
    assert any("of the references' tokens are unknown" in line for line in lines)


def test_sides_that_the_corpus_lacks_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"train": 20, "validation": 5, "test": 5}
    stages = Stages(tmp_path, "translation", monkeypatch, {"download.sample_rows": few, "tokenize.source": "fr"})
    stages.run("download")
    with pytest.raises(UserError, match=r"no column `fr` \(it has: de, en\)"):
        stages.run("tokenize")
