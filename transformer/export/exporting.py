"""The export stage's common part: bundle, model card, and whether the bundle answers as the evaluated model did."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.export.bundle import open_bundle, write_bundle
from transformer.export.card import model_card

Row = dict[str, str]
Answers = Callable[[Any, Sequence[Row]], Sequence[tuple[str, bool]]]
"""Given the opened bundle and rows of predictions.tsv: for each its answer, and whether that is what the row says."""


@dataclass(frozen=True, kw_only=True)
class ExportInputs:
    """What the earlier stages wrote."""

    corpus: Path
    tokens: Path
    vocab: Path
    trained: Path
    training: Path
    evaluation: Path
    predictions: Path


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is said of a task's model."""

    task: Task
    title: str
    use: str
    """Markdown: what it does, and how to call it."""
    main_metric: str
    """Of the validation split, which alone may choose between models; higher is better."""
    question: str
    """The column of predictions.tsv that the model is asked."""


def export_bundle(
    bundle: Path, model: Model, inputs: ExportInputs, *, decoding: Mapping[str, Any], train: Mapping[str, Any]
) -> None:
    """Write the bundle with its model card. decoding: how it makes answers.

    Raises UserError when an input is missing or broken.
    """
    figures = read_json(inputs.evaluation)
    card = model_card(
        model.title,
        model.use,
        provenance=read_json(inputs.corpus / "provenance.json"),
        params={"model": read_json(inputs.trained / "config.json")["model"], "train": train},
        figures=figures | {"training": read_json(inputs.training)},
    )
    value = figures["validation"][model.main_metric]
    main_metric = {"name": f"validation.{model.main_metric}", "value": value, "higher_is_better": True}
    config: Mapping[str, Any] = {"decoding": dict(decoding), "main_metric": main_metric}
    write_bundle(
        bundle, model.task, trained=inputs.trained, vocab=inputs.vocab, tokens=inputs.tokens, card=card, config=config
    )


def check_bundle(
    bundle: Path,
    model: Model,
    predictions: Path,
    answers: Answers,
    *,
    limit: int | None,
    device: str,
    observer: Observer,
) -> dict[str, float]:
    """Open the bundle and repeat the first `limit` predictions (None: all). Returns how many agreed.

    A split at a time, since the same batches give the same last bits. Where only a part of a split is asked and seems
    to differ, all of it is: in other batches, answers that are nearly as good may change places. Raises UserError at
    the first that differs.
    """
    predictor, verified = open_bundle(bundle, device), 0
    for split, group in groupby(read_table(predictions), key=lambda row: row["split"]):
        whole = list(group)
        rows = whole if limit is None else whole[: limit - verified]
        observer.say(f"checking {len(rows):,} answers of the exported model on {split}")
        found = answers(predictor, rows)
        if len(rows) < len(whole) and not all(agrees for _, agrees in found):
            found = answers(predictor, whole)[: len(rows)]
        for row, (answer, agrees) in zip(rows, found, strict=True):
            if not agrees:
                raise UserError(
                    f"the exported model answers {answer!r} for {row[model.question][:80]!r}, which is not what"
                    f" evaluate wrote to {predictions}: its parts do not belong together; run"
                    f" `dvc repro --force --single-item evaluate@{model.task.name} export@{model.task.name}`"
                )
        verified += len(rows)
        if verified == limit:
            break
    return {"verified": float(verified)}
