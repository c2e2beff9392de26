"""Metrics of translations, compared with sacreBLEU's own and with hand-counted ones."""

import os
from collections import Counter
from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest, Result

from transformer.data.leakage import Duplicates, words
from transformer.evaluation.headline import shortfall
from transformer.families.seq2seq.metrics import (
    Group,
    Texts,
    groups,
    over_translation,
    repetition,
    split_figures,
    under_translation,
    word_counts,
    worst_and_median,
)
from transformer.families.seq2seq.scores import length_ratio, text_metrics, token_metrics

COUNT = 60
_WORDS = ("A", "man", ",", "two", "dogs", "and", "Women", "run", "sleep", "over", "the", "small", "red", "hill", ".")


@pytest.fixture(scope="module")
def sentences() -> tuple[list[str], list[str], list[str]]:
    """References, good hypotheses and worse ones: the references with some or more words replaced."""
    draw, vocabulary = np.random.default_rng(0), np.array(_WORDS)
    references = [" ".join(draw.choice(vocabulary, size=draw.integers(4, 16))) for _ in range(COUNT)]

    def spoiled(rate: float) -> list[str]:
        rows = ([word if draw.random() > rate else draw.choice(vocabulary) for word in r.split()] for r in references)
        return [" ".join(row) for row in rows]

    return references, spoiled(0.2), spoiled(0.3)


@pytest.mark.parametrize("cased", [True, False])
def test_scores_and_signatures_are_sacrebleus(sentences: tuple[list[str], ...], cased: bool) -> None:
    references, hypotheses, _ = sentences
    name = "bleu_13a_cased" if cased else "bleu_13a_lowercased"
    metrics = text_metrics(hypotheses, references, cased=cased) | token_metrics(hypotheses, references)
    bleu, plain = sacrebleu.BLEU(lowercase=not cased), sacrebleu.BLEU(tokenize="none", lowercase=True, force=True)
    chrf = sacrebleu.CHRF(lowercase=not cased)
    for own, given in ((metrics[name], bleu), (metrics["bleu"], plain), (metrics["chrf"], chrf)):
        assert own.score() == pytest.approx(given.corpus_score(hypotheses, [references]).score, abs=1e-4)
        assert own.signature == str(given.get_signature())
    some = [3, 4, 17]
    part = [[texts[row] for row in some] for texts in (hypotheses, references)]
    assert metrics[name].only(np.array(some)).score() == pytest.approx(
        bleu.corpus_score(part[0], [part[1]]).score, abs=1e-4
    )
    assert metrics["chrf"].sentence_scores()[5] == pytest.approx(
        chrf.sentence_score(hypotheses[5], [references[5]]).score, abs=1e-4
    )


def test_intervals_and_p_values_agree_with_sacrebleus_bootstrap(sentences: tuple[list[str], ...]) -> None:
    references, better, worse = sentences
    figures = figures_of(better, references, baseline=worse, samples=1000)
    metrics = {"bleu_13a_cased": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF()}
    with mock.patch.dict(os.environ, SACREBLEU_SEED="1"):
        systems: list[tuple[str, Sequence[str]]] = [("b", worse), ("o", better)]
        _, results = PairedTest(systems, metrics, [references], test_type="bs", n_samples=1000)()
    for name, score in metrics.items():
        given, other = (score.corpus_score(texts, [references], n_bootstrap=1000) for texts in (better, worse))
        assert (figures[f"{name}_high"] - figures[f"{name}_low"]) / 2 == pytest.approx(given._ci, rel=0.1)
        assert figures[f"{name}_minus_baseline"] == pytest.approx(given.score - other.score, abs=1e-3)
        given_p = next(row[1] for key, row in results.items() if key.lower().startswith(name[:4]))
        assert isinstance(given_p, Result)
        # sacreBLEU centres absolute differences, which is the same if all have the same sign.
        assert figures[f"{name}_minus_baseline_p"] == pytest.approx(given_p.p_value, abs=0.05)


def test_a_cased_and_a_lowercased_system_are_compared_without_case(sentences: tuple[list[str], ...]) -> None:
    """Else every capital letter would be a lead. `chrf` of one alone is another figure, that of evaluation.json."""
    references, hypotheses, _ = sentences
    lower = [text.lower() for text in hypotheses]
    figures = figures_of(hypotheses, references, baseline=lower, samples=9)
    assert figures["bleu_13a_lowercased_minus_baseline"] == figures["chrf_lowercased_minus_baseline"] == 0
    assert "bleu_13a_cased_minus_baseline" not in figures and "chrf_minus_baseline" not in figures
    assert figures["chrf_lowercased"] == figures["baseline_chrf_lowercased"] > figures["chrf"]
    assert "Does not beat the result in evaluate.baseline: BLEU, lowercased 13a" in shortfall({"test": figures})
    assert figures_of(hypotheses, references, baseline=hypotheses)["bleu_13a_cased_minus_baseline"] == 0


def texts_of(hypotheses: list[str], references: list[str]) -> Texts:
    return Texts(
        sources=references,
        references=references,
        hypotheses=hypotheses,
        reference_tokens=[text.lower() for text in references],
        hypothesis_tokens=[text.lower() for text in hypotheses],
        cased=True,
    )


def figures_of(
    hypotheses: list[str],
    references: list[str],
    duplicates: tuple[int, ...] = (),
    baseline: list[str] | None = None,
    samples: int = 0,
) -> dict[str, float]:
    """The metrics of a split; duplicates: its rows that nearly equal one of train."""
    count, texts = len(hypotheses), texts_of(hypotheses, references)
    match = np.full(count, -1, dtype=np.int64)
    match[[*duplicates]] = 0
    found = Duplicates(np.zeros(count, dtype=bool), np.zeros(count), match)
    return split_figures(texts, texts.metrics(), duplicates=found, baseline=baseline, samples=samples)


def test_scores_without_duplicates_are_those_of_the_other_sentences(sentences: tuple[list[str], ...]) -> None:
    references, hypotheses, _ = sentences
    figures = figures_of(hypotheses, references, duplicates=(0, 9))
    rest = [row for row in range(COUNT) if row not in (0, 9)]
    kept = texts_of([hypotheses[row] for row in rest], [references[row] for row in rest])
    for name, metric in kept.metrics().items():
        assert figures[f"{name}_without_duplicates"] == metric.score()
    assert figures["near_duplicates"] == 2
    assert not any(name.endswith(("_low", "_high", "_p")) for name in figures), "no resamples, no intervals"
    every = figures_of(hypotheses, references, duplicates=tuple(range(COUNT)))
    assert every["near_duplicates"] == COUNT and not any("without" in name for name in every)
    nothing = figures_of([], [], samples=9)
    assert not any(nothing.values()) and "bleu_low" not in nothing


def test_over_and_under_translation_are_the_counted_shares() -> None:
    # 1-grams: `the` and `cat` once too often, out of 5; 2-grams: none twice, so the mean is 0.
    assert over_translation([words("the cat cat sat the")], [words("the cat sat on mats")]) == 0
    # for `a b c d`: 1-grams 2 + 2 of 6; 2-grams `a b` 2 and `b a` 1 of 5; six tokens instead of four.
    expected = (4 / 6 * 3 / 5) ** 0.5 * np.exp(1 - 4 / 6)
    assert over_translation([[*"ababab"]], [[*"abcd"]]) == pytest.approx(expected)
    # missing n-grams of the reference: 2 of 4, 2 of 3, 2 of 2, 1 of 1; the hypothesis is shorter.
    assert under_translation([[*"ababab"]], [[*"abcd"]]) == pytest.approx((2 / 4 * 2 / 3) ** 0.25)
    assert under_translation([["a"]], [["a", "b"]]) == pytest.approx((1 / 2 * 1) ** 0.5 * np.exp(1 - 1 / 2))


def test_repetition_counts_hypotheses_that_say_again_what_the_reference_does_not() -> None:
    references = ["very very good", "one two", "one two one two", "x", "a b"]
    hypotheses = ["very very good", "one two one two", "one two one two", "", "a b c d a b c d"]
    assert repetition([h.split() for h in hypotheses], [r.split() for r in references]) == 2 / 5
    assert repetition([], []) == 0
    assert length_ratio(["a b", "c"], ["a b c d", "e f"]) == 0.5


def grouped(
    sources: list[str], counts: Counter[str], hypotheses: list[str], references: list[str]
) -> dict[tuple[str, str], Group]:
    metrics = token_metrics(hypotheses, references) | text_metrics(hypotheses, references, cased=True)
    return {(group.grouping, group.group): group for group in groups(sources, counts, metrics, 100)}


def test_groups_hold_the_sentences_that_they_say() -> None:
    counts = word_counts(["der Hund"] * 6 + ["die Katze schläft"] * 5)
    assert counts == Counter({"der": 6, "hund": 6, "die": 5, "katze": 5, "schläft": 5})
    long = " ".join(["der"] * 9)
    sources = ["Der Hund.", "Der Hund schläft.", "Die Katze!", "Der Igel und der Bär der der der", long]
    references = ["w x y z", "a b c d", "e f g h", "i j k l", "m n o p"]
    hypotheses = ["w x y z", "a b c d", "no", "i j k l", "no"]
    found = grouped(sources, counts, hypotheses, references)
    assert {name: found[key].sentences for key in found for name in [" ".join(key)]} == {
        **{"source_length 1-8": 4, "source_length 9-12": 1, "rare_words 0": 3, "rare_words 1": 1},
        **{"rare_words 2+": 1, "unknown_words 0": 4, "unknown_words 2+": 1},
    }
    assert found["rare_words", "1"] == Group("rare_words", "1", 1, 100.0, 100.0, "", "")
    assert found["rare_words", "2+"].bleu == 0
    for group in found.values():
        assert group.sentences == 1 or float(group.low) <= group.bleu <= float(group.high), group
    assert found["unknown_words", "2+"].bleu == pytest.approx(100)
    chinese = ["一个男人睡在公园里的长椅上。", "两只猫。"]  # words are not separated, so characters count
    found = grouped(chinese, word_counts(["一只狗睡在公园里"] * 9), ["a b", "c d"], ["a b", "c d"])
    assert {("source_length", "1-8"), ("source_length", "13-16"), ("unknown_words", "2+")} <= found.keys()


def test_worst_and_median_sentences() -> None:
    scores = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    assert worst_and_median(scores, 2) == [("worst", 5), ("worst", 1), ("median", 3), ("median", 4)]
    assert worst_and_median(scores[:1], 2) == [("worst", 0), ("median", 0)] and worst_and_median(scores[:0], 2) == []
