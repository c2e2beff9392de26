"""All metrics of a translator on one split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from transformer.core.errors import UserError
from transformer.corpora.leakage import Duplicates
from transformer.evaluation.bootstrap import Floats, comparison_figures, interval_figures
from transformer.families.seq2seq.evaluation.adequacy import adequacy_figures
from transformer.families.seq2seq.evaluation.scores import (
    GIVEN,
    Metric,
    length_ratio,
    text_metrics,
    text_tokenizer,
    token_metrics,
    writes_capitals,
)
from transformer.text.pretokenize import PreTokenizer, PreTokenizerParams

_LOWERCASED = "_lowercased"


class Judged(NamedTuple):
    """Texts as lowercased, space-separated tokens, and the tokenizer that split them."""

    hypotheses: list[str]
    references: list[str]
    tokenizer: str
    """Its name in sacreBLEU; GIVEN for spaCy."""


def of_tokens(hypotheses: Sequence[str], references: Sequence[str]) -> Judged:
    """Lowercase texts that are already space-separated tokens."""
    return Judged([text.lower() for text in hypotheses], [text.lower() for text in references], GIVEN)


def judged(language: str | None, hypotheses: Sequence[str], references: Sequence[str]) -> Judged:
    """Split texts by spaCy's rules for the language; if it has none, with the tokenizer from `text_tokenizer`."""
    try:
        split = PreTokenizer(
            PreTokenizerParams(kind="spacy", language=language or "xx", lowercase=True, html_breaks="keep")
        )
    except UserError:
        name = text_tokenizer(references)
        tokenize = BLEU(tokenize=name).tokenizer

        def by_sacrebleu(texts: Sequence[str]) -> list[str]:
            return [" ".join(tokenize(text.lower()).split()) for text in texts]

        return Judged(by_sacrebleu(hypotheses), by_sacrebleu(references), name)
    return Judged(split(list(hypotheses)), split(list(references)), GIVEN)


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The sentences of one split, (N,) each."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str]
    reference_tokens: list[str]
    """Lowercased, space-separated tokens."""
    hypothesis_tokens: list[str]
    cased: bool
    """True if the model writes capital letters."""
    tokenizer: str = GIVEN
    """Tokenizer that split the tokens; one of sacreBLEU's if spaCy has none for the language."""

    def metrics(self) -> dict[str, Metric]:
        """Compute `bleu` on tokens; `chrf` and `bleu_13a_cased`, `bleu_zh_lowercased` or similar on texts."""
        given = self.tokenizer == GIVEN  # else sacreBLEU splits the texts itself, and its signature names the tokenizer
        sides = (self.hypothesis_tokens, self.reference_tokens) if given else (self.hypotheses, self.references)
        by_token = token_metrics(*sides, self.tokenizer)
        return by_token | text_metrics(self.hypotheses, self.references, cased=self.cased)


def split_figures(
    texts: Texts,
    metrics: Mapping[str, Metric],
    *,
    duplicates: Duplicates,
    baseline: Sequence[str] | None,
    samples: int,
) -> dict[str, float]:
    """Compute scores with intervals, adequacy metrics, scores without duplicates, and differences to a baseline.

    metrics: of the texts; baseline: another system's hypotheses, (N,), compared by the metrics on plain text, since
    these do not depend on a system's tokens.
    """
    resampled = {name: metric.resampled(samples) for name, metric in metrics.items()}
    figures = {name: metric.score() for name, metric in metrics.items()} | {"sentences": len(texts.sources)}
    figures |= {"length_ratio": length_ratio(texts.hypothesis_tokens, texts.reference_tokens)}
    figures |= adequacy_figures(texts.hypothesis_tokens, texts.reference_tokens)
    figures |= interval_figures(resampled)
    figures |= duplicates.figures()
    if not duplicates.any.all():
        figures |= {f"{name}_without_duplicates": metric.score(~duplicates.any) for name, metric in metrics.items()}
    if baseline is not None:
        figures |= _baseline_figures(texts, metrics, resampled, baseline, samples)
    return figures


def _baseline_figures(
    texts: Texts,
    metrics: Mapping[str, Metric],
    resampled: Mapping[str, Floats],
    baseline: Sequence[str],
    samples: int,
) -> dict[str, float]:
    """Compare plain-text metrics with the baseline; lowercased if it lacks capitals that the references have."""
    if not texts.cased or writes_capitals(baseline) or not writes_capitals(texts.references):
        theirs = text_metrics(baseline, texts.references, cased=texts.cased)
        ours = {name: (metrics[name].score(), resampled[name]) for name in theirs}
        added = {}
    else:
        theirs = _lowercased(baseline, texts.references)
        lowercased = _lowercased(texts.hypotheses, texts.references)
        ours = {name: (metric.score(), metric.resampled(samples)) for name, metric in lowercased.items()}
        added = {name: score for name, (score, _) in ours.items()}
    return added | comparison_figures(
        "baseline",
        {name: (ours[name][0], their.score()) for name, their in theirs.items()},
        {name: (ours[name][1], their.resampled(samples)) for name, their in theirs.items()},
        dict.fromkeys(theirs, sum(map(str.__ne__, texts.hypotheses, baseline))),
    )


def _lowercased(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Metric]:
    """Return lowercased metrics of texts, under names distinct from the cased ones."""
    found = text_metrics(hypotheses, references, cased=False)
    return {f"{name.removesuffix(_LOWERCASED)}{_LOWERCASED}": metric for name, metric in found.items()}


def worst_and_median(scores: Floats, count: int) -> list[tuple[str, int]]:
    """Return the sentences with the lowest scores and those around the median: (`worst` or `median`, index).

    scores: (N,); count: maximum number of sentences of each kind.
    """
    order: list[int] = np.argsort(scores, kind="stable").tolist()
    middle = max((len(order) - count) // 2, 0)
    worst = [("worst", number) for number in order[:count]]
    return worst + [("median", number) for number in order[middle : middle + count]]
