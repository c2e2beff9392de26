"""The export stage of all families: parameters, the bundle, the model card, and verification that the bundle
reproduces the evaluated predictions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from transformer.core.errors import UserError, in_markdown
from transformer.core.files import read_json, read_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import PRETRAINING, Task
from transformer.core.validation import Hardware, Section, StageParams
from transformer.inference.bundle import open_bundle, write_bundle
from transformer.nn.device import prepare


class ExportParams(Section):
    """`export` of a task."""

    registered_name: str | None = Field(min_length=1, pattern=r"^[^/:\s'\"]+$")
    """The model's name in MLflow's registry; null derives one from the task, the languages and the corpus."""
    alias: str = Field(min_length=1, pattern=r"^[A-Za-z_-]+$")
    """Points to the best version by the main metric on the validation split of the newest result."""
    verify_rows: int | None = Field(ge=1)
    """Number of predictions that the exported model must reproduce; null for all."""

    @field_validator("alias")
    @classmethod
    def _is_free(cls, alias: str) -> str:
        if alias.lower() == "latest":
            raise ValueError("MLflow reserves `latest` for the newest version; choose another, such as `best`")
        return alias


class ExportStageParams(StageParams):
    """Parameters of the stage; `evaluate` has a family's inference parameters."""

    train: Mapping[str, Any]
    evaluate: Section
    export: ExportParams
    hardware: Hardware


Row = dict[str, str]
Answers = Callable[[Any, Sequence[Row]], Sequence[tuple[str, bool]]]
"""Maps the opened bundle and rows of predictions.tsv to each row's answer, and True if it equals the prediction."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Description of a task's model."""

    task: Task
    title: str
    use: str
    """Markdown: the model's purpose, and how to call it."""
    main_metric: str
    """Main metric, on the validation split, the only one that may be used to select models."""
    higher_is_better: bool = True
    question: str
    """Input column of predictions.tsv."""


def export_model(
    model: Model,
    params: ExportStageParams,
    *,
    paths: Paths,
    answers: Answers,
    observer: Observer,
) -> dict[str, float]:
    """Write the bundle, and check that it answers as evaluate did. Return the number of matching answers."""
    device = prepare(params.hardware).device.type
    export_bundle(model, paths, decoding=params.evaluate.model_dump(), train=params.train)
    limit = params.export.verify_rows
    return check_bundle(paths.bundle, model, paths.predictions, answers, limit=limit, device=device, observer=observer)


def export_bundle(model: Model, paths: Paths, *, decoding: Mapping[str, Any], train: Mapping[str, Any]) -> None:
    """Write the bundle with its model card. decoding: the inference parameters.

    Raises UserError when an input is missing or broken.
    """
    metrics = read_json(paths.evaluation)
    params = {"model": read_json(paths.trained / "config.json")["model"], "train": train}
    if (paths.trained / PRETRAINING).is_file():
        params |= {"pretraining": read_json(paths.trained / PRETRAINING)}
    card = model_card(
        model.title,
        model.use,
        provenance=read_json(paths.corpus / "provenance.json"),
        params=params,
        figures=metrics | {"training": read_json(paths.training)},
    )
    value = metrics["validation"][model.main_metric]
    main_metric = {
        "name": f"validation.{model.main_metric}",
        "value": value,
        "higher_is_better": model.higher_is_better,
    }
    config: Mapping[str, Any] = {"decoding": dict(decoding), "main_metric": main_metric}
    write_bundle(
        paths.bundle,
        model.task,
        trained=paths.trained,
        vocab=paths.vocab,
        tokens=paths.tokens,
        card=card,
        config=config,
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
    """Open the bundle and reproduce the first `limit` predictions (None: all). Returns the number verified.

    Works split by split, since the same batches give the same last bits. If only part of a split is checked and seems
    to differ, the whole split is: in other batches, nearly tied answers may swap. Raises UserError at the first that
    differs.
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
                    f" evaluate wrote to {predictions}: its parts do not match; run"
                    f" `dvc repro --force --single-item evaluate@{model.task.name} export@{model.task.name}`"
                )
        verified += len(rows)
        if verified == limit:
            break
    return {"verified": float(verified)}


def model_card(
    title: str, use: str, *, provenance: Mapping[str, Any], params: Mapping[str, Any], figures: Mapping[str, Any]
) -> str:
    """Write the model card: Markdown with the data, the parameters and the metrics as tables.

    provenance: the corpus's provenance.json; params: sections of parameters by name; figures: metrics by name.
    """
    parts = [f"# {title}\n", use, "## Data\n", _table("property", "value", _flat(provenance)), "## Parameters\n"]
    parts += [_table("parameter", "value", _flat(params)), "## Metrics\n", _table("metric", "value", _flat(figures))]
    return "\n".join(parts)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        path = f"{prefix}{name}"
        flat |= _flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return flat


def _table(left: str, right: str, rows: Mapping[str, Any]) -> str:
    shown = rows
    lines = [f"| {left} | {right} |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(value)} |" for name, value in shown.items()]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return in_markdown(" ".join(str(value).split()))
