"""BLEU and chrF by sacreBLEU, with signatures (Papineni et al. 2002; Popović 2015; Post 2018)."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

Scores = dict[str, float]
_LENGTH_BINS = (8, 12, 16, 24)  # source words, upper ends; one more bin for longer sentences


def text_scores(hypotheses: Sequence[str], references: Sequence[str], *, cased: bool) -> tuple[Scores, dict[str, str]]:
    """BLEU with 13a tokenization and chrF of plain text: cased, or lowercased where the model has no case.

    Returns the scores and the signatures, by the same names.
    """
    bleu = BLEU(tokenize="13a", lowercase=not cased)
    chrf = CHRF(lowercase=not cased)
    name = "bleu_13a_cased" if cased else "bleu_13a_lowercased"
    scores = {name: _bleu(bleu, hypotheses, references)}
    scores["chrf"] = round(chrf.corpus_score(hypotheses, [references]).score, 4) if hypotheses else 0.0
    return scores, {name: _signature(bleu), "chrf": _signature(chrf)}


def token_scores(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[Scores, dict[str, str]]:
    """BLEU of lowercased tokens separated by spaces, the figure that the public notebooks report."""
    metric = BLEU(tokenize="none", lowercase=True, force=True)
    scores = {"bleu": _bleu(metric, hypotheses, references)}
    tokens = [sum(len(text.split()) for text in texts) for texts in (hypotheses, references)]
    scores["length_ratio"] = round(tokens[0] / max(tokens[1], 1), 4)
    return scores, {"bleu": _signature(metric)}


def bleu_by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> list[tuple[str, int, float]]:
    """BLEU of lowercased tokens by source length: rows of the bin's name, its sentences, and its score."""
    rows = []
    for low, high in zip((0, *_LENGTH_BINS), (*_LENGTH_BINS, None), strict=True):
        inside = [
            i
            for i, text in enumerate(sources)
            if low < len(text.split()) and (high is None or len(text.split()) <= high)
        ]
        if inside:
            scores, _ = token_scores([hypotheses[i] for i in inside], [references[i] for i in inside])
            rows.append((f"{low + 1}-{high}" if high else f"{low + 1}+", len(inside), scores["bleu"]))
    return rows


def _bleu(metric: BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return round(metric.corpus_score(hypotheses, [references]).score, 4) if hypotheses else 0.0


def _signature(metric: BLEU | CHRF) -> str:
    return str(metric.get_signature())
