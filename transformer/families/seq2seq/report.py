"""report: content of the report page of a translation model."""

from collections.abc import Iterator

from transformer.core.task import Task
from transformer.evaluation.headline import TEXT_BLEUS, headline, main_first, percent
from transformer.report.build import ReportParams, write_report
from transformer.report.charts import bar_chart
from transformer.report.content import Picture, Section, Table
from transformer.report.result import Files, columns, learning_curves, score_table

METRICS = ("bleu", *TEXT_BLEUS, "chrf", "word_perplexity", "length_ratio")
_CURVES = (
    ("Loss", {"train_loss": "training", "validation_loss": "validation"}, "nats per target token"),
    ("Validation perplexity", {"validation_perplexity": "validation"}, "perplexity a target token"),
)
_GROUPINGS = {
    "source_length": ("BLEU by source length", "words of the source"),
    "rare_words": ("BLEU by rare words", "words that training has 1 to 5 times"),
    "unknown_words": ("BLEU by unknown words", "words that training never has"),
}
_FEW = 20  # sentences; the score of a smaller group says little

Params = ReportParams
run = write_report


def summary(result: Files) -> str:
    """Return a one-line summary of the result's quality."""
    return headline("bleu", result.evaluation)


def weaknesses(task: Task, result: Files) -> Iterator[str]:
    """Yield the model's weaknesses, one line each."""
    split = result.main_split
    figures = result.evaluation[split]
    for grouping, (_, label) in _GROUPINGS.items():
        rows = [row for row in _groups(result, grouping) if int(row["sentences"]) >= _FEW]
        if len(rows) > 1:
            worst = min(rows, key=lambda row: float(row["bleu"]))
            where = f"{worst['group']} ({label}; {worst['sentences']} sentences)"
            yield f"Weakest by {grouping.replace('_', ' ')}: BLEU {float(worst['bleu']):.1f} at {where}."
    hundredths = {
        name: f"{100 * figures[name]:.1f}" for name in ("repetition", "over_translation", "under_translation")
    }
    yield (
        f"{hundredths['repetition']} % of the translations repeat themselves; over-translation (OTEM-2) is"
        f" {hundredths['over_translation']}, under-translation (UTEM-4) {hundredths['under_translation']}. The last one"
        " also counts a word that was translated otherwise, so compare it with another result's."
    )
    if figures.get("unknown_rate"):
        share = percent(figures["unknown_rate"])
        yield f"{share} of the references' tokens are unknown: perplexities flatter the model by them."
    if "attainable_bleu" in figures:
        yield (
            f"A perfect translation would have {figures['attainable_bleu']:.1f} BLEU on plain text: spaCy's tokens are"
            " joined as German and English are written. Trust chrF."
        )


def sections(task: Task, result: Files) -> Iterator[Section]:
    """Yield the sections of the page, the most informative first."""
    names = [name for name in METRICS if name in result.evaluation[result.main_split]]
    yield score_table(result, main_first(names, result.evaluation))
    yield learning_curves(result, _CURVES)
    yield Section("Where it is good and where it is not", f"Of the split {result.main_split}.", list(_charts(result)))
    rows = [list(row.values()) for row in result.by_split("tables/sentences.tsv")]
    header = ["split", "kind", "chrF", "source", "reference", "translation"]
    text = "The 20 worst sentences of each split by chrF, and the 20 in its middle."
    yield Section("Sentences", text, tables=[Table("The worst and the median sentences", header, rows, long=True)])


def _charts(result: Files) -> Iterator[Picture]:
    for grouping, (title, label) in _GROUPINGS.items():
        shown = columns(_groups(result, grouping))
        if shown:
            yield bar_chart(title, shown, group="group", value="bleu", count="sentences", label=label, x_label="BLEU")


def _groups(result: Files, grouping: str) -> list[dict[str, str]]:
    rows = result.table("tables/groups.tsv")
    return [row for row in rows if row["split"] == result.main_split and row["grouping"] == grouping]
