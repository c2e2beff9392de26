"""report: content of the report page of a translation model."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from transformer.core.task import Reporting, Task
from transformer.data.text import separates_words
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.headline import TEXT_BLEUS, headline, main_first, percent
from transformer.families.seq2seq.scores import text_metrics, writes_capitals
from transformer.reporting.content import Cell, Example, Marked, Picture, Section, Table, interval_chart
from transformer.reporting.result import Files, columns, head_costs, score_table

Row = dict[str, str]
_COMPARED = ("hypothesis", "reference")


class TranslationReporting(Reporting):
    """Report and comparison of translation models."""

    def summary(self, result: Files) -> str:
        """Return a one-line summary of the result's quality."""
        return headline("bleu", result.evaluation)

    def weaknesses(self, task: Task, result: Files) -> Iterator[str]:
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
            f" {hundredths['over_translation']}, under-translation (UTEM-4) {hundredths['under_translation']}. The last"
            " also counts a word that was translated otherwise, so compare it with another result's."
        )
        if figures.get("unknown_rate"):
            share = percent(figures["unknown_rate"])
            yield f"{share} of the references' tokens are unknown: perplexities flatter the model by them."
        if "attainable_bleu" in figures:
            yield (
                f"A perfect translation would have {figures['attainable_bleu']:.1f} BLEU on plain text: spaCy's tokens"
                " are joined as German and English are written. Trust chrF."
            )

    def curves(self, task: Task) -> Sequence[tuple[str, Mapping[str, str], str]]:
        """Return the learning curves, the most informative first."""
        return _CURVES

    def texts_with_answers(self, task: Task, result: Files) -> Iterator[Example]:
        """Yield the worst sentence, and two of median quality."""
        rows = [row for row in result.table("tables/sentences.tsv") if row["split"] == result.main_split]
        for kind, count in (("worst", 1), ("median", 2)):
            for row in [row for row in rows if row["kind"] == kind][:count]:
                reference, translation = marked(row["reference"], row["hypothesis"])
                fields: dict[str, Cell] = {"source": row["source"], "translation": translation, "reference": reference}
                yield Example(f"{kind}, chrF {float(row['chrf']):.1f}", [*fields.items()])

    def sections(self, task: Task, result: Files) -> Iterator[Section]:
        """Yield the sections of the page, the most informative first."""
        names = [name for name in METRICS if name in result.evaluation[result.main_split]]
        yield score_table(result, main_first(names, result.evaluation))
        where = f"Of the split {result.main_split}, with 95 % bootstrap intervals."
        yield Section("Where it is good and where it is not", where, pictures=list(_charts(result)))
        yield from head_costs(result, "BLEU")
        rows: list[list[Cell]] = [
            [row["split"], row["kind"], row["chrf"], row["source"], *marked(row["reference"], row["hypothesis"])]
            for row in result.by_split("tables/sentences.tsv")
        ]
        header = ["split", "kind", "chrF", "source", "reference", "translation"]
        text = "The 20 worst sentences of each split by chrF, and the 20 in its middle. Marked: words that only the"
        text += " reference has, or only the translation."
        yield Section("Sentences", text, tables=[Table("The worst and the median sentences", header, rows, long=True)])

    def texts(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the fields that must be equal in both systems' predictions."""
        return [(row["source"], row["reference"]) for row in rows]

    def scored(
        self, task: Task, systems: Sequence[Sequence[Row]], samples: int
    ) -> list[dict[str, tuple[float, Floats]]]:
        """Return per system the metrics on plain text, independent of tokens: score and bootstrap samples, by name.

        They are cased if all systems write capital letters. If only some do, chrF is named as lowercased.
        """
        capitals = [writes_capitals(row["hypothesis"] for row in rows) for rows in systems]
        found = (text_metrics(*(_column(rows, name) for name in _COMPARED), cased=all(capitals)) for rows in systems)
        names = {"chrf": "chrf_lowercased"} if any(capitals) and not all(capitals) else {}
        return [
            {names.get(name, name): (m.score(), m.resampled(samples)) for name, m in metrics.items()}
            for metrics in found
        ]

    def differing(self, metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
        """Count the texts that two systems translate differently."""
        return sum(map(str.__ne__, _column(one, "hypothesis"), _column(two, "hypothesis")))


def _column(rows: Sequence[Row], name: str) -> list[str]:
    return [row[name] for row in rows]


_WORD = re.compile(
    r"[^\s!-/:-@\[-^`{-~\u00a1-\u00bf\u060c\u061b\u061f\u0964\u0965\u2010-\u205e\u3001-\u303f]+\s*|\S\s*|\s+"
)
"""A run of neither spaces nor punctuation, or one mark, with the space after it."""
_LONGEST = 2_000  # characters: comparing takes the square of them


def marked(one: str, two: str) -> tuple[Cell, Cell]:
    """Return two texts with the words marked that the other lacks at that place, whatever their case.

    In scripts that do not separate words these are characters. Long texts stay as they are.
    """
    if max(len(one), len(two)) > _LONGEST:
        return one, two
    split = [_WORD.findall(text) if separates_words(text) else _characters(text) for text in (one, two)]
    first, second = ([word.casefold().strip() for word in words] for words in split)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    kept = [{start[side] + step for start in blocks for step in range(start.size)} for side in (0, 1)]
    parts = (
        Marked([(word, place not in same) for place, word in enumerate(words)])
        for words, same in zip(split, kept, strict=True)
    )
    return next(parts), next(parts)


def _characters(text: str) -> list[str]:
    """Return the characters of a text, each with its combining marks."""
    found: list[str] = []
    for letter in text:
        if found and unicodedata.category(letter)[0] == "M":
            found[-1] += letter
        else:
            found.append(letter)
    return found


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


def _charts(result: Files) -> Iterator[Picture]:
    for grouping, (title, label) in _GROUPINGS.items():
        shown = columns(_groups(result, grouping))
        if shown:
            yield interval_chart(
                f"{title} ({label})",
                shown,
                group="group",
                value="bleu",
                count="sentences",
                label=label,
                x_label="BLEU",
            )


def _groups(result: Files, grouping: str) -> list[dict[str, str]]:
    rows = result.table("tables/groups.tsv")
    return [row for row in rows if row["split"] == result.main_split and row["grouping"] == grouping]
