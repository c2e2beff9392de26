"""Files of one result, and the report sections shared by all tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table
from transformer.evaluation.headline import metric_label, splits, with_interval
from transformer.reporting.content import Columns, Picture, Section, Table, interval_chart, line_chart
from transformer.reporting.style import FILE
from transformer.workflow.pipeline import OPTIONAL

_EXPLAINED = {
    "positions": "The sinusoidal table of positions (Vaswani et al. 2017, section 3.5).",
    "scale": "The softmax of scores with and without division by the root of d_k (section 3.2.1).",
    "masks": "What padding and causal masks hide (section 3.2.3).",
    "schedules": "The learning rate of every schedule over this training (equation 3).",
}


@dataclass(frozen=True)
class Files:
    """Stage outputs for one task."""

    root: Path
    task: str
    stages: frozenset[str] = frozenset(OPTIONAL)
    """Stages of the result; in place of a missing one, another result's files may exist."""

    @property
    def reports(self) -> Path:
        """Folder of the task's reports."""
        return self.root / "reports" / self.task

    @cached_property
    def evaluation(self) -> dict[str, dict[str, Any]]:
        """Contents of evaluation.json: metrics by split, and signatures."""
        content: dict[str, dict[str, Any]] = read_json(self.reports / "evaluation.json")
        return content

    @cached_property
    def training(self) -> dict[str, Any]:
        """Contents of training.json."""
        content: dict[str, Any] = read_json(self.reports / "training.json")
        return content

    @cached_property
    def conversion(self) -> dict[str, dict[str, Any]]:
        """Contents of conversion.json; empty if nothing was converted."""
        path = self.reports / "conversion.json"
        content: dict[str, dict[str, Any]] = read_json(path) if "convert" in self.stages and path.is_file() else {}
        return content

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Contents of the corpus's provenance.json."""
        content: dict[str, Any] = read_json(self.root / "data" / self.task / "corpus" / "provenance.json")
        return content

    @property
    def main_split(self) -> str:
        """The test split in the headline."""
        return splits(self.evaluation)[0]

    def table(self, path: str) -> list[dict[str, str]]:
        """Return the rows of a TSV under the task's reports."""
        return list(read_table(self.reports / path))

    def by_split(self, path: str) -> list[dict[str, str]]:
        """Return the rows of a TSV, the main test split first and validation last."""
        order = splits(self.evaluation)
        return sorted(self.table(path), key=lambda row: order.index(row["split"]))

    def columns(self, path: str) -> Columns:
        """Return the columns of a TSV under the task's reports; empty for a table without rows."""
        return columns(self.table(path))

    def attention(self) -> str:
        """Content of attention.json; empty if the model has no attention."""
        if "figures" not in self.stages:
            return ""
        path = self.reports / "figures" / FILE
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read ({error}): run `dvc repro` to make it again") from error


def columns(rows: Sequence[Mapping[str, str]]) -> Columns:
    """Transpose a table's rows into columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def score_table(result: Files, names: Sequence[str]) -> Section:
    """Tabulate the metrics of every split, with their intervals."""
    evaluation = result.evaluation
    rows = [[split, *(with_interval(name, evaluation[split]) or "–" for name in names)] for split in splits(evaluation)]
    text = "Validation is there to choose by; the test splits say what a choice is worth."
    header = ["split", *(metric_label(name, evaluation) for name in names)]
    table = Table("Scores, with 95 % bootstrap intervals", header, rows)
    return Section("Scores", text, tables=[table])


def head_costs(result: Files, unit: str) -> Iterator[Section]:
    """Show what each attention head is worth, if it was measured; unit: of the cost, such as BLEU."""
    if not (result.reports / "tables" / "heads.tsv").exists():
        return
    shown = dict(result.columns("tables/heads.tsv"))
    if shown:
        shown["name"] = [f"{where}, head {head}" for where, head in zip(shown["attention"], shown["head"], strict=True)]
        chart = interval_chart(
            "Cost of removing each head",
            shown,
            group="name",
            value="cost",
            label="head",
            x_label=f"{unit} lost without the head",
            zero=True,
        )
        text = (
            "What the first validation texts lose when one head is left out of the trained model (Michel et al. 2019)."
        )
        yield Section("Attention heads", text, pictures=[chart])


def all_figures(result: Files) -> Section:
    """Tabulate every number in evaluation.json."""
    evaluation = result.evaluation
    names = splits(evaluation)
    figures = sorted({figure for split in names for figure in evaluation[split]})
    rows = [[figure, *(_number(evaluation[split].get(figure)) for split in names)] for figure in figures]
    tables = [Table("evaluation.json", ["figure", *names], rows, long=True)]
    signatures = [[name, text] for name, text in evaluation.get("signatures", {}).items()]
    if signatures:
        tables.append(Table("Signatures", ["metric", "signature"], signatures))
    return Section("All figures", tables=tables)


def learning_curves(result: Files, charts: Iterable[tuple[str, Mapping[str, str], str]]) -> Section:
    """Plot curves over the updates; charts: title, label by column, and the y-axis label. None if it has no epochs.

    The training loss is measured at the updates, everything else after each epoch.
    """
    if "epochs" not in result.training:
        return Section("Learning curves")
    by_epoch = result.table("history.tsv")
    rows = [*result.table("updates.tsv"), *({**row, "train_loss": ""} for row in by_epoch)]
    shown = {name: [row.get(name, "") for row in rows] for name in by_epoch[0]}
    pictures = [
        line_chart(title, shown, x="step", ys=ys, y_label=y_label, x_label="updates")
        for title, ys, y_label in charts
        if any(name in shown for name in ys)
    ]
    best, epochs = result.training["best_epoch"], result.training["epochs"]
    text = f"Validation was best in epoch {best:.0f} of {epochs}; train.averaging says which weights were kept."
    text += " Validation far above training means that the model learns by heart."
    return Section("Learning curves", text, pictures=pictures)


def training_times(points: Sequence[Mapping[str, float]]) -> Section:
    """Show how training spent its time; points: the timings it reported, known only on the machine where it ran."""
    spent = {
        what: sum(point.get(f"epoch_{name}_seconds", 0.0) for point in points)
        for name, what in (("update", "updates"), ("validation", "validation"), ("saving", "saving its state"))
    }
    whole = sum(spent.values())
    shares = ", ".join(f"{what} {seconds / whole:.1%}".replace("%", " %") for what, seconds in spent.items())
    rates = [point for point in points if "tokens_per_second" in point]
    shown = {name: [f"{point[name]:g}" for point in rates] for name in ("step", "tokens_per_second")}
    text = f"Training took {_duration(whole)} where it ran: {shares}. Times are in no output: each run has its own."
    ys = {"tokens_per_second": "tokens read"}
    chart = line_chart("Speed of training", shown, x="step", ys=ys, y_label="tokens/s", x_label="updates")
    return Section("Where training spent its time", text, pictures=[chart] if rates else [])


def conversions(result: Files) -> Iterator[Section]:
    """Tabulate converted models: size, agreement with the exported model and quality; none if there are none."""
    if not result.conversion:
        return
    rows = [
        [engine, f"{found['bytes'] / 1e6:.2f}", f"{found['rows']:,}"]
        for engine, found in result.conversion.items()
        if "bytes" in found
    ]
    refused = [
        f"Not {engine}: {found['refused']}." for engine, found in result.conversion.items() if "refused" in found
    ]
    text = "The exported model for engines without PyTorch, verified against it on rows of the validation split."
    tables = [Table("Converted models", ["engine", "megabytes", "rows"], rows)] if rows else []
    yield Section("Other formats", " ".join([text, *refused]), tables=tables)


def duplicates(result: Files) -> Section:
    """Show the texts of validation and test that also occur in an earlier split."""
    rows = [list(row.values()) for row in result.table("tables/duplicates.tsv")]
    header = ["split", "similarity", "text", "seen in", "the text seen"]
    text = "Texts of validation and test that are the same as, or much like, one of an earlier split. The scores"
    text += " without them are among all figures, as `_without_duplicates`."
    return Section("Leaks between the splits", text, tables=[Table("Duplicates", header, rows, long=True)])


def explained(result: Files) -> Section:
    """Show the figures that explain the model."""
    pictures = []
    for name, alt in _EXPLAINED.items():
        path = result.reports / "figures" / f"{name}.svg"
        if "figures" in result.stages and path.is_file():
            pictures.append(Picture(alt, path.read_bytes()))
    return Section("How it works", "docs/paper.md walks through the paper with these.", pictures=pictures)


def parameters(leaves: Mapping[str, str]) -> Section:
    """Tabulate all parameters of the task."""
    rows = [[name, text] for name, text in leaves.items()]
    return Section("Parameters", tables=[Table("params.yaml", ["parameter", "value"], rows, long=True)])


def facts(result: Files) -> Iterator[tuple[str, str]]:
    """Yield facts about the run for every task."""
    origin = result.provenance
    corpus = " ".join(
        str(origin[name]) for name in ("source", "repository", "configuration", "revision") if origin.get(name)
    )
    rows = ", ".join(f"{split} {number:,}" for split, number in sorted(origin["rows"].items()))
    yield "data", f"{corpus} (SHA-256 {origin['content_sha256'][:12]}…)"
    added = f", {origin['added_rows']:,} rows of train added" if "added_rows" in origin else ""
    yield "texts", f"{rows}{added}"
    training = result.training
    yield "model", f"{training['parameters']:,} parameters"
    if "epochs" in training:
        best = f"the best was {training['best_epoch']:.0f}"
        yield "training", f"{training['steps']:,} steps in {training['epochs']} epochs, {best}"
    yield "machine", f"{training['device']}, {training['precision']}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _number(cell: Any) -> str:
    return "–" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
