"""report: content of the report page of a language model."""

from collections.abc import Iterator, Mapping, Sequence

from transformer.core.task import Reporting, Task
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.headline import headline, percent, value
from transformer.families.language.scores import METRICS, of_rows, resampled, scores
from transformer.families.language.scores import differing as differing_texts
from transformer.reporting.content import Example, Section, Table, interval_chart
from transformer.reporting.result import Files, head_costs, score_table

Row = dict[str, str]


class LanguageReporting(Reporting):
    """Report and comparison of language models."""

    scored_anew = False  # predictions.tsv has scores of texts, not model outputs

    def summary(self, result: Files) -> str:
        """Return a one-line summary of the result's quality."""
        return headline("perplexity", result.evaluation)

    def weaknesses(self, task: Task, result: Files) -> Iterator[str]:
        """Yield the model's weaknesses, one line each."""
        figures = result.evaluation[result.main_split]
        right = value("accuracy", figures["accuracy"])
        per_word = value("word_perplexity", figures["word_perplexity"])
        yield f"It predicts {right} of the tokens right; perplexity per word {per_word}."
        rows = [row for row in result.table("plots/loss_by_place.tsv") if int(row["tokens"]) >= _FEW]
        if len(rows) > 1:
            worst = max(rows, key=lambda row: float(row["loss"]))
            yield f"Weakest by place: {float(worst['loss']):.2f} nats per token at {worst['place']} of the context."
        if figures["unknown_rate"]:
            yield f"{percent(figures['unknown_rate'])} of the tokens are unknown: perplexities flatter it by them."

    def curves(self, task: Task) -> Sequence[tuple[str, Mapping[str, str], str]]:
        """Return the learning curves, the most informative first."""
        return _CURVES

    def texts_with_answers(self, task: Task, result: Files) -> Iterator[Example]:
        """Yield the first samples."""
        rows = [row for row in result.table("tables/samples.tsv") if row["split"] == result.main_split]
        for number, row in enumerate(rows[:_EXAMPLES], start=1):
            yield Example(f"sample {number}", [("given", row["given"]), ("answer", row["answer"])])

    def sections(self, task: Task, result: Files) -> Iterator[Section]:
        """Yield the sections of the page, the most informative first."""
        yield score_table(result, METRICS)
        places = interval_chart(
            "Loss by place",
            result.columns("plots/loss_by_place.tsv"),
            group="place",
            value="loss",
            count="tokens",
            label="place in the context",
            x_label="nats per token",
        )
        text = f"Of the split {result.main_split}: how much the model makes of the context that a token has."
        yield Section("Where in the context", text, pictures=[places])
        yield from head_costs(result, "nats per token")
        yield _texts(result, "samples", "Samples", "What the model makes of a beginning, or of a gap.")
        yield _texts(result, "unexpected", "Least expected texts", "The 20 texts of each split with the highest loss.")

    def texts(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the fields that must be equal in both systems' predictions."""
        return [(row["split"], row["text"]) for row in rows]

    def scored(
        self, task: Task, systems: Sequence[Sequence[Row]], samples: int
    ) -> list[dict[str, tuple[float, Floats]]]:
        """Return the score and its bootstrap samples, per system and metric."""
        found = []
        for rows in systems:
            counts = of_rows(rows, [row["text"] for row in rows])
            own, drawn = scores(counts), resampled(counts, samples)
            found.append({name: (own[name], drawn[name]) for name in METRICS})
        return found

    def differing(self, metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
        """Count the texts on which two systems differ in a way that affects the metric."""
        return differing_texts(metric, of_rows(one, ()), of_rows(two, ()))


_CURVES = (
    ("Loss", {"train_loss": "training", "validation_loss": "validation"}, "nats per predicted token"),
    ("Validation perplexity", {"validation_perplexity": "validation"}, "perplexity per predicted token"),
    ("Validation accuracy", {"validation_accuracy": "validation"}, "share predicted right"),
)
_EXAMPLES = 3
_FEW = 100  # tokens; the loss of fewer says little


def _texts(result: Files, name: str, title: str, text: str) -> Section:
    rows = result.by_split(f"tables/{name}.tsv")
    header = list(rows[0]) if rows else []
    return Section(title, text, tables=[Table(title, header, [[*row.values()] for row in rows], long=True)])
