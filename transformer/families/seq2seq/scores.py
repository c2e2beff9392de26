"""BLEU and chrF by sacreBLEU, with signatures (Papineni et al. 2002; Popović 2015; Post 2018)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transformer.data.text import HAN, KANA, SOUTH_EAST, composed, lowercased
from transformer.evaluation.bootstrap import Floats, bootstrap

Rows = NDArray[np.int64] | NDArray[np.bool_]
_DIGITS = 4
GIVEN = "none"
"""sacreBLEU's name for text that is already tokenized."""
_SCRIPTS = {
    name: re.compile(f"[{letters}]")
    for name, letters in {"han": HAN, "kana": KANA, "south_east": SOUTH_EAST, "hangul": "\uac00-\ud7af"}.items()
}
_KANA_SHARE = 0.05
"""Minimum fraction of kana among the letters from which text in Han characters counts as Japanese."""


@dataclass(frozen=True)
class Metric:
    """One metric of one system: sacreBLEU's statistics per sentence, whose sums give any corpus score."""

    metric: BLEU | CHRF
    counts: Floats
    """(N, K): statistics per sentence."""
    signature: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "signature", str(self.metric.get_signature()))

    def only(self, rows: Rows) -> "Metric":
        """Return the metric of the given sentences alone."""
        return Metric(self.metric, self.counts[rows])

    def score(self) -> float:
        """Return the corpus score; 0 without sentences."""
        return round(self._of(self.counts.sum(axis=0)), _DIGITS) if len(self.counts) else 0.0

    def sentence_scores(self) -> Floats:
        """Return the sentence-level scores, (N,)."""
        return np.array([self._of(row) for row in self.counts]).round(_DIGITS)

    def resampled(self, samples: int) -> Floats:
        """Return bootstrap samples of the corpus score, (samples,)."""
        return bootstrap(lambda weights: self._of(weights @ self.counts), len(self.counts), samples)

    def _of(self, sums: Floats) -> float:
        return float(self.metric._compute_score_from_stats(sums.astype(int).tolist()).score)


def text_metrics(
    hypotheses: Sequence[str], references: Sequence[str], *, cased: bool, language: str | None = None
) -> dict[str, Metric]:
    """Return BLEU and chrF of plain text: cased, or lowercased by the rules of its language if the model is uncased.

    BLEU's name includes its tokenizer: 13a, or another one for scripts without word separators.
    """
    tokenizer = text_tokenizer(references)
    if not cased:
        hypotheses, references = ([lowercased(text, language) for text in side] for side in (hypotheses, references))
    name = f"bleu_{tokenizer.replace('-', '_')}_{'cased' if cased else 'lowercased'}"
    return {
        name: _counted(BLEU(tokenize=tokenizer, lowercase=not cased, force=True), hypotheses, references),
        "chrf": _counted(CHRF(lowercase=not cased), hypotheses, references),
    }


def writes_capitals(texts: Iterable[str]) -> bool:
    """True if a system's texts have capital letters; without any, cased BLEU is meaningless."""
    return any(text != text.lower() for text in texts)


def token_metrics(hypotheses: Sequence[str], references: Sequence[str], tokenizer: str = GIVEN) -> dict[str, Metric]:
    """Return BLEU of lowercased tokens: the space-separated ones, as the public notebooks report, or sacreBLEU's."""
    return {"bleu": _counted(BLEU(tokenize=tokenizer, lowercase=True, force=True), hypotheses, references)}


def text_tokenizer(references: Sequence[str]) -> str:
    """Return the name of sacreBLEU's tokenizer for the script of most letters in the references.

    `zh` for Chinese, MeCab's for Japanese and Korean if installed (else `char` and `13a`), `char` for Thai, Lao, Khmer,
    Burmese and Tibetan, `13a` for all others.
    """
    text = "".join(references)
    letters = max(sum(map(str.isalpha, text)), 1)
    share = {name: len(script.findall(text)) / letters for name, script in _SCRIPTS.items()}
    if share["hangul"] > 1 / 2:
        return "ko-mecab" if _exists("ko-mecab") else "13a"
    if share["han"] + share["kana"] > 1 / 2:
        if share["kana"] < _KANA_SHARE:
            return "zh"
        return "ja-mecab" if _exists("ja-mecab") else "char"
    return "char" if share["south_east"] > 1 / 2 else "13a"


@cache
def _exists(tokenizer: str) -> bool:
    """True if the libraries that a tokenizer needs are installed (`pip install sacrebleu[ja]`, `[ko]`)."""
    try:
        BLEU(tokenize=tokenizer)
    except (ImportError, RuntimeError):
        return False
    return True


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the number of hypothesis tokens divided by the number of reference tokens."""
    tokens = [sum(len(text.split()) for text in texts) for texts in (hypotheses, references)]
    return round(tokens[0] / max(tokens[1], 1), _DIGITS)


def _counted(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Metric:
    # Private, but also the basis of sacreBLEU's own significance tests; its public functions score one sample only.
    # The empty sentence at the end makes it count references even if there are no others.
    texts, expected = ([*map(composed, side), ""] for side in (hypotheses, references))
    *counts, _ = metric._extract_corpus_statistics(texts, [expected])
    return Metric(metric, np.array(counts, dtype=np.float64))
