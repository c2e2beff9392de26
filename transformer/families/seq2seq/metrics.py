"""All metrics of a translator on one split."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from transformer.core.errors import UserError
from transformer.data.leakage import Duplicates, word_count, words
from transformer.data.tokenization import PreTokenizer, PreTokenizerParams
from transformer.evaluation.bootstrap import Floats, comparison_figures, interval, interval_figures
from transformer.families.seq2seq.scores import (
    GIVEN,
    Metric,
    length_ratio,
    text_metrics,
    text_tokenizer,
    token_metrics,
    writes_capitals,
)

_LENGTH_BINS = (8, 12, 16, 24)  # source words, upper ends; one more bin for longer sentences
_RARE = 5  # occurrences in training
_MANY = 2


class Group(NamedTuple):
    """A group of similar sentences, and its scores."""

    grouping: str
    """`source_length`, `rare_words` or `unknown_words`."""
    group: str
    sentences: int
    bleu: float
    chrf: float
    low: float | str
    """Lower bound of BLEU's 95 % interval; "" if there is none."""
    high: float | str


def word_counts(sources: Iterable[str]) -> Counter[str]:
    """Count each word in the training sources."""
    return Counter(word for text in sources for word in words(text))


def groups(
    sources: Sequence[str], counts: Mapping[str, int], metrics: Mapping[str, Metric], samples: int
) -> Iterator[Group]:
    """Yield BLEU and chrF by the source's number of words, rare words and unknown words, without empty groups.

    counts: word counts in training. A word is rare if training has it 1 to 5 times, and unknown if it never does,
    whatever the model's vocabulary. metrics: `bleu` and `chrf`; samples: of the bootstrap, for the interval.
    """
    occurrences = [[counts.get(word, 0) for word in words(text)] for text in sources]
    rare = [_few(sum(0 < count <= _RARE for count in row)) for row in occurrences]
    unknown = [_few(sum(count == 0 for count in row)) for row in occurrences]
    few = [_few(number) for number in range(_MANY + 1)]
    for grouping, names, order in (
        ("source_length", [_length(text) for text in sources], _length_names()),
        ("rare_words", rare, few),
        ("unknown_words", unknown, few),
    ):
        for name in order:
            rows = np.array([own == name for own in names], dtype=bool)
            if rows.any():
                bleu, chrf = (metrics[name].only(rows) for name in ("bleu", "chrf"))
                ends = interval(bleu.resampled(samples)) or ("", "")
                low, high = (end if isinstance(end, str) else round(end, _DIGITS) for end in ends)
                yield Group(grouping, name, int(rows.sum()), bleu.score(), chrf.score(), low, high)


def _few(number: int) -> str:
    return str(number) if number < _MANY else f"{_MANY}+"


def _length_names() -> list[str]:
    starts = [1, *(end + 1 for end in _LENGTH_BINS)]
    return [*(f"{start}-{end}" for start, end in zip(starts, _LENGTH_BINS, strict=False)), f"{starts[-1]}+"]


def _length(text: str) -> str:
    return _length_names()[int(np.searchsorted(_LENGTH_BINS, word_count(text)))]


Tokens = Sequence[str]
_OVER, _UNDER = 2, 4  # the longest n-grams of OTEM-2 and UTEM-4
_LONGEST_REPEATED = 4
_DIGITS = 6


def adequacy_figures(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute over-translation, under-translation and repetition, all 0 at best; texts are space-separated tokens."""
    split = [text.split() for text in hypotheses], [text.split() for text in references]
    figures = {
        "over_translation": over_translation(*split),
        "under_translation": under_translation(*split),
        "repetition": repetition(*split),
    }
    return {name: round(value, _DIGITS) for name, value in figures.items()}


def over_translation(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Compute OTEM-2 (Yang et al. 2018): 1- and 2-grams beyond their count in the reference, and beyond the first.

    The geometric mean of their fractions of all n-grams of the hypotheses, times exp(1 - r/h) if the hypotheses have
    more tokens (h) than the references (r).
    """
    excess, total = [0] * _OVER, [0] * _OVER
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, _OVER + 1):
            own, given = _ngrams(hypothesis, n), _ngrams(reference, n)
            excess[n - 1] += sum(max(count - max(given[ngram], 1), 0) for ngram, count in own.items())
            total[n - 1] += own.total()
    return _mean(excess, total) * _penalty(longer=hypotheses, shorter=references)


def under_translation(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Compute UTEM-4 (Yang et al. 2018): 1- to 4-grams of the reference that are missing from the hypothesis.

    The geometric mean of their fractions of all n-grams of the references, times exp(1 - h/r) if the hypotheses have
    fewer tokens (h) than the references (r). A word that is translated differently counts as missing.
    """
    missing, total = [0] * _UNDER, [0] * _UNDER
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, _UNDER + 1):
            own, given = _ngrams(hypothesis, n), _ngrams(reference, n)
            missing[n - 1] += (given - own).total()
            total[n - 1] += given.total()
    return _mean(missing, total) * _penalty(longer=references, shorter=hypotheses)


def repetition(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Return the fraction of hypotheses that immediately repeat 1 to 4 tokens that the reference does not repeat."""
    found = sum(
        bool(_repeated(hypothesis) - _repeated(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    return found / max(len(hypotheses), 1)


def _repeated(tokens: Tokens) -> set[tuple[str, ...]]:
    return {
        tuple(tokens[start : start + n])
        for n in range(1, _LONGEST_REPEATED + 1)
        for start in range(len(tokens) - 2 * n + 1)
        if tokens[start : start + n] == tokens[start + n : start + 2 * n]
    }


def _ngrams(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def _mean(part: Sequence[int], whole: Sequence[int]) -> float:
    """Return the geometric mean of the fractions, ignoring orders that no sentence is long enough for."""
    shares = [a / b for a, b in zip(part, whole, strict=True) if b]
    return math.prod(shares) ** (1 / len(shares)) if shares else 0.0


def _penalty(*, longer: Sequence[Tokens], shorter: Sequence[Tokens]) -> float:
    long, short = sum(map(len, longer)), sum(map(len, shorter))
    return math.exp(1 - short / long) if long > short else 1.0


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
    language: str | None = None
    """The target language, which lowercasing depends on."""

    def metrics(self) -> dict[str, Metric]:
        """Compute `bleu` on tokens; `chrf` and `bleu_13a_cased`, `bleu_zh_lowercased` or similar on texts."""
        given = self.tokenizer == GIVEN  # else sacreBLEU splits the texts itself, and its signature names the tokenizer
        sides = (self.hypothesis_tokens, self.reference_tokens) if given else (self.hypotheses, self.references)
        by_token = token_metrics(*sides, self.tokenizer)
        return by_token | text_metrics(self.hypotheses, self.references, cased=self.cased, language=self.language)


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
        figures |= {
            f"{name}_without_duplicates": metric.only(~duplicates.any).score() for name, metric in metrics.items()
        }
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
        theirs = text_metrics(baseline, texts.references, cased=texts.cased, language=texts.language)
        ours = {name: (metrics[name].score(), resampled[name]) for name in theirs}
        added = {}
    else:
        theirs = _lowercased(baseline, texts.references, texts.language)
        lowercased = _lowercased(texts.hypotheses, texts.references, texts.language)
        ours = {name: (metric.score(), metric.resampled(samples)) for name, metric in lowercased.items()}
        added = {name: score for name, (score, _) in ours.items()}
    return added | comparison_figures(
        "baseline",
        {name: (ours[name][0], their.score()) for name, their in theirs.items()},
        {name: (ours[name][1], their.resampled(samples)) for name, their in theirs.items()},
        dict.fromkeys(theirs, sum(map(str.__ne__, texts.hypotheses, baseline))),
    )


def _lowercased(hypotheses: Sequence[str], references: Sequence[str], language: str | None) -> dict[str, Metric]:
    """Return lowercased metrics of texts, under names distinct from the cased ones."""
    found = text_metrics(hypotheses, references, cased=False, language=language)
    return {f"{name.removesuffix(_LOWERCASED)}{_LOWERCASED}": metric for name, metric in found.items()}


def worst_and_median(scores: Floats, count: int) -> list[tuple[str, int]]:
    """Return the sentences with the lowest scores and those around the median: (`worst` or `median`, index).

    scores: (N,); count: maximum number of sentences of each kind.
    """
    order: list[int] = np.argsort(scores, kind="stable").tolist()
    middle = max((len(order) - count) // 2, 0)
    worst = [("worst", number) for number in order[:count]]
    return worst + [("median", number) for number in order[middle : middle + count]]
