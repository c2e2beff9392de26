"""Format a result's main metrics as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Split = Mapping[str, Any]
"""Metrics of one split in evaluation.json."""
_UNSEPARATED = ("zh", "ja_mecab", "char")
"""BLEU tokenizers for scripts that do not separate words (families/seq2seq/scores.py)."""
_BLEUS = {
    f"bleu_{name}_{case}": f"BLEU, {case} {name}"
    for name in ("13a", "ko_mecab", *_UNSEPARATED)
    for case in ("cased", "lowercased")
}
TEXT_BLEUS = tuple(_BLEUS)
"""All names of BLEU on plain text, by tokenizer and case."""


class _Form(NamedTuple):
    """Display format of a metric."""

    digits: int
    ends: tuple[float, ...]
    """Extreme values, to which no other value is rounded."""
    percent: bool = False


_PERCENT = _Form(1, (0, 100), percent=True)
_SCORE = _Form(1, (0, 100))
_SHARE = _Form(3, (0, 1))
_PERPLEXITY = _Form(2, (1,))
_MOST_DIGITS = 6  # as in evaluation.json
_LARGE = 1e6  # from here on, the number of digits is all that can be read
_WORDS = {
    "bleu": ("BLEU", _SCORE),
    **{name: (words, _SCORE) for name, words in _BLEUS.items()},
    "chrf": ("chrF", _SCORE),
    "chrf_lowercased": ("chrF, lowercased", _SCORE),
    "perplexity": ("perplexity", _PERPLEXITY),
    "word_perplexity": ("perplexity per word", _PERPLEXITY),
    "bits_per_byte": ("bits per byte", _SHARE),
    "accuracy": ("accuracy", _PERCENT),
    "balanced_accuracy": ("balanced accuracy", _PERCENT),
    "majority_accuracy": ("accuracy of the most common label", _PERCENT),
    "macro_f1": ("macro F1", _PERCENT),
    "f1": ("F1", _PERCENT),
    "roc_auc": ("ROC-AUC", _SHARE),
    "pr_auc": ("PR-AUC", _SHARE),
    "brier": ("Brier score", _SHARE),
    "ece": ("calibration error", _SHARE),
    "ece_with_temperature": ("calibration error with temperature", _SHARE),
}

_COMPARED = ("accuracy", *TEXT_BLEUS)
"""Metrics that decide which system is better; a split has one of them for each other system. chrF replaces an
unsuitable BLEU."""
_OF_LANGUAGE_MODELS = "bits_per_byte"
"""Metric that replaces them if a split has it; lower is better."""
_BASELINES = {"linear": "the linear baseline", "baseline": "the result in evaluate.baseline"}
_SIGNIFICANT = 0.05
_LIBRARY = "version:"  # in a signature
_MANY_CUT = 0.1  # of the texts
_LEAK = 1.0  # points by which known texts must raise a score to be a headline


OF_LABEL = "label:"
"""Prefix of the signature of a metric that is about one of two labels."""


def metric_label(name: str, evaluation: Mapping[str, Any] | None = None) -> str:
    """Return a metric's display name, with the label that it is about, if any: `F1 of spam`."""
    words = _WORDS[name][0] if name in _WORDS else name.replace("_", " ")
    signature = str((evaluation or {}).get("signatures", {}).get(name, ""))
    return f"{words} of {signature.removeprefix(OF_LABEL)}" if signature.startswith(OF_LABEL) else words


def value(name: str, number: float, further: int = 0) -> str:
    """Format a metric's value; further: additional digits."""
    if name not in _WORDS:
        return f"{number:.{4 + further}g}"
    form = _WORDS[name][1]
    return _shown(form._replace(digits=form.digits + further), number)


def percent(share: float, digits: int = 1) -> str:
    """Format a share in percent; only exact values are shown as 100 % and 0 %."""
    return _shown(_PERCENT._replace(digits=digits), share)


def _shown(form: _Form, number: float) -> str:
    shown = 100 * number if form.percent else number
    if abs(shown) >= _LARGE:
        return f"{shown:.3g}"
    wanted = (f"{shown:.{digits}f}" for digits in range(form.digits, _MOST_DIGITS + 1))
    # -0.0 is 0 too.
    text = next((text for text in wanted if shown in form.ends or float(text) not in form.ends), f"{shown:.3g}")
    return f"{text} %" if form.percent else text


def with_interval(name: str, split: Split) -> str:
    """Format a metric with its 95 % interval, if any; empty if the split does not have the metric."""
    if name not in split:
        return ""
    between = interval(name, split)
    return value(name, split[name]) + (f" ({between})" if between else "")


def interval(name: str, split: Split) -> str:
    """Format a metric's 95 % interval; empty if it was not computed."""
    low, high = split.get(f"{name}_low"), split.get(f"{name}_high")
    return "" if low is None or high is None else f"{value(name, low)} to {value(name, high)}"


def splits(evaluation: Mapping[str, Split]) -> list[str]:
    """Return the splits in evaluation.json, the main test split first and validation last."""
    return sorted(
        (name for name in evaluation if name != "signatures"), key=lambda name: (name.startswith("validation"), name)
    )


def measured(metric: str, evaluation: Mapping[str, Any]) -> str:
    """Describe how a metric was measured, without the library's version; empty if its name suffices."""
    signature = str(evaluation.get("signatures", {}).get(metric, ""))
    return "|".join(part for part in signature.split("|") if not part.startswith(_LIBRARY))


def main_first(names: Sequence[str], evaluation: Mapping[str, Split]) -> list[str]:
    """Return the metrics in column order: as given, but chrF first if the language does not separate words."""
    if _separates_words(evaluation) or "chrf" not in names:
        return list(names)
    return ["chrf", *(name for name in names if name != "chrf")]


def _separates_words(evaluation: Mapping[str, Split]) -> bool:
    """True if the language of the main test split separates words, judging by BLEU's tokenizer."""
    split = evaluation[splits(evaluation)[0]]
    return not any(f"bleu_{kind}_" in metric for kind in _UNSEPARATED for metric in split)


def headline(name: str, evaluation: Mapping[str, Split]) -> str:
    """Format a metric on the main test split in one line, with its interval; empty if the split does not have it.

    chrF replaces BLEU if the language does not separate words, because BLEU is then computed on characters.
    """
    split = splits(evaluation)[0]
    if name == "bleu" and not _separates_words(evaluation):
        name = "chrf"
    if name not in evaluation[split]:
        return ""
    between = interval(name, evaluation[split])
    sure = f", 95 % interval {between}" if between else ""
    line = f"{metric_label(name, evaluation)} {value(name, evaluation[split][name])} on {split}{sure}"
    return line[0].upper() + line[1:]


def shortfall(evaluation: Mapping[str, Split]) -> str:
    """Return one sentence per baseline that the model does not beat on the main test split.

    Adds one if seen texts inflate its score, and one if it truncates many texts; empty if none applies. Baselines
    are the linear model that `evaluate` trains and the result that `evaluate.baseline` names. A difference with a p
    value above 0.05 does not count; without a p value (`bootstrap_samples: 0`) every difference does.
    """
    name = splits(evaluation)[0]
    split = evaluation[name]
    metrics = _decisive(evaluation)
    decisive = (_OF_LANGUAGE_MODELS,) if _OF_LANGUAGE_MODELS in split else metrics
    compared = [(each, other) for other in _BASELINES for each in decisive if f"{each}_minus_{other}" in split]
    behind = [_behind(metric, other, name, split) for metric, other in compared]
    return " ".join(filter(None, [*behind, *cautions(evaluation)]))


def cautions(evaluation: Mapping[str, Split]) -> list[str]:
    """Return a sentence if texts that were seen raise the score of the main test split, and one if many were cut."""
    name = splits(evaluation)[0]
    split = evaluation[name]
    metric = next((metric for metric in _decisive(evaluation) if metric in split), None)
    leak = _leak(metric, name, split) if metric else ""
    return [line for line in (leak, _cut(name, split)) if line]


def _decisive(evaluation: Mapping[str, Split]) -> tuple[str, ...]:
    return _COMPARED if _separates_words(evaluation) else ("chrf", "chrf_lowercased")


def comparisons(evaluation: Mapping[str, Split]) -> Iterator[str]:
    """Yield one line per baseline, with the difference to it on the main test split and its interval."""
    name = splits(evaluation)[0]
    split = evaluation[name]
    for other, words in _BASELINES.items():
        for metric in (_OF_LANGUAGE_MODELS, *_COMPARED, "chrf"):
            if (difference := f"{metric}_minus_{other}") in split:
                own, theirs = _apart(metric, split[metric], split[f"{other}_{metric}"])
                ends = [split[f"{difference}_{end}"] for end in ("low", "high") if f"{difference}_{end}" in split]
                sure = f", 95 % interval {' to '.join(signed(metric, end) for end in ends)}" if ends else ""
                line = f"{words} has {metric_label(metric)} {theirs}, this model {own}"
                yield f"{line[0].upper()}{line[1:]} ({signed(metric, split[difference])}{points(metric)}{sure})."
                break


def signed(name: str, difference: float) -> str:
    """Format a difference of two values of a metric with its sign, in `points`."""
    form = _WORDS[name][1] if name in _WORDS else _SHARE
    shown = 100 * difference if form.percent else difference
    return f"{shown:+.{form.digits}f}"


def points(name: str) -> str:
    """Return the unit of a difference of two values of a metric, with a space before it, if it has one."""
    return " points" if name in _WORDS and _WORDS[name][1].percent else ""


def _cut(name: str, split: Split) -> str:
    """Return a sentence if many texts were truncated; else empty."""
    share = split.get("truncated_rate", 0)
    many = percent(share, digits=0)
    line = f"{many} of the texts of {name} are longer than model.max_length: only their beginning was read."
    return line if share >= _MANY_CUT else ""


def _leak(metric: str, name: str, split: Split) -> str:
    """Return a sentence if exact or near duplicates of texts in earlier splits raise the score; else empty."""
    known = split.get("duplicates", 0) + split.get("near_duplicates", 0)
    rest = split.get(f"{metric}_without_duplicates")
    if not known:
        return ""
    texts = "text of {} is" if known == 1 else "texts of {} are"
    line = f"{known:,} {texts.format(name)} in an earlier split, exactly or nearly"
    if rest is None:
        return f"{line}: the scores may say little about new texts."
    if split[metric] - rest < (_LEAK / 100 if metric.endswith("accuracy") else _LEAK):
        return ""
    scores = " and not ".join(_apart(metric, rest, split[metric]))
    return f"{line}: without them, {metric_label(metric)} is {scores}."


def _behind(metric: str, other: str, name: str, split: Split) -> str:
    """Return a sentence with the metrics if the model does not beat the other system; else empty."""
    difference, p = split[f"{metric}_minus_{other}"], split.get(f"{metric}_minus_{other}_p")
    difference = -difference if metric == _OF_LANGUAGE_MODELS else difference
    if difference > 0 and (p is None or p < _SIGNIFICANT):
        return ""
    judgement = "Does not beat" if difference <= 0 else "Is not significantly better than"
    own, their = _apart(metric, split[metric], split[f"{other}_{metric}"])
    digits = 4 if p is not None and f"{p:.2g}" == f"{_SIGNIFICANT}" else 2
    sure = "" if p is None else f" (p = {p:.{digits}g})"
    return f"{judgement} {_BASELINES[other]}: {metric_label(metric)} {own} against {their} on {name}{sure}."


def _apart(metric: str, one: float, two: float) -> tuple[str, str]:
    """Format two values with as many digits as needed to distinguish them."""
    pairs = [(value(metric, one, further), value(metric, two, further)) for further in range(_MOST_DIGITS)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
