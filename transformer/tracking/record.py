"""Reads a row's content from a chain and its files: parameters, metrics, curves, tags, data sets. Writes nothing.

`reports` and `corpus` are folders that the stages wrote for one task (docs/design.md).
"""

import csv
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.core.digest import leaves
from transformer.core.files import read_json
from transformer.results.chain import Chain

HYPERPARAMETERS = ("tokenize", "vocab", "model", "train", "evaluate", "hardware")
_WHERE_FROM = {"vocab.path", "vocab.repository", "vocab.revision"}
METRIC_REPORTS = ("training", "evaluation", "vocabulary")
HISTORY = "history.tsv"
_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")
_DIGEST_LENGTH = 36
_TAG_LENGTH = 5000
_NAMED = 4  # maximum changes in a row's name


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    name: str
    value: float
    step: int


@dataclass(frozen=True)
class DatasetSplit:
    """One split of the corpus."""

    name: str
    digest: str
    source: str
    profile: str
    context: str


def hyperparameters(chain: Chain) -> dict[str, str]:
    """The parameters that affect the result, by name in params.yaml without the task; no paths or repository names."""
    found: dict[str, str] = {}
    for values in chain.params.values():
        for section, value in values.items():
            name = section.removeprefix(f"{chain.task}.")
            if name.partition(".")[0] in HYPERPARAMETERS:
                items = leaves({name: value}).items()
                for path, item in sorted(items):  # params.yaml and DVC have orders of their own
                    if path not in _WHERE_FROM:
                        found[allowed_name(path)] = _text(item)
    return found


def changes(chain: Chain, base: Chain) -> str:
    """The hyperparameters that differ from another result's, such as `d_model=512 train.batch_size=32`.

    They are in alphabetical order: DVC and params.yaml have orders of their own. A name appears without its section if
    no other section has the same name.
    """
    own, other = hyperparameters(chain), hyperparameters(base)
    named = Counter(name.rpartition(".")[2] for name in own)
    changed = []
    for name, value in sorted(own.items()):
        leaf = name.rpartition(".")[2]
        if value != other.get(name):
            changed.append(f"{leaf if named[leaf] == 1 else name}={value}")
    more = [f"+{len(changed) - _NAMED}"] if len(changed) > _NAMED else []
    return " ".join([*changed[:_NAMED], *more])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def final_figures(reports: Path) -> tuple[dict[str, float], dict[str, str]]:
    """The numbers and the strings in the metric files, flattened.

    A name already used by a curve or an earlier file is prefixed with its file's name, so no curve gets extra points.
    """
    numbers: dict[str, float] = {}
    strings: dict[str, str] = {}
    taken = {point.name for point in curves(reports)}
    for report in METRIC_REPORTS:
        items = {allowed_name(name): value for name, value in leaves(read_json(reports / f"{report}.json")).items()}
        for name, value in items.items():
            unique = f"{report}.{name}" if name in taken else name
            if isinstance(value, str):
                strings[unique] = value[:_TAG_LENGTH]
            elif type(value) in (int, float) and math.isfinite(value):
                numbers[unique] = float(value)
        taken |= set(items)
    return numbers, strings


def allowed_name(name: str) -> str:
    """`name` with characters that MLflow does not allow replaced by `_`."""
    return _NOT_IN_NAMES.sub("_", name)


def curves(reports: Path) -> list[Point]:
    """The points of history.tsv: every column but `epoch` and `step`, over `step`; empty cells are skipped."""
    with (reports / HISTORY).open(encoding="utf-8", newline="") as stream:
        return [
            Point(allowed_name(column), float(cell), int(float(row["step"])))
            for row in csv.DictReader(stream, delimiter="\t")
            for column, cell in row.items()
            if column not in ("epoch", "step") and cell and math.isfinite(float(cell))
        ]


def dataset_splits(task: str, corpus: Path) -> list[DatasetSplit]:
    """The splits of a corpus, with the SHA-256 of their content, cut to MLflow's limit of 36 digits."""
    provenance = read_json(corpus / "provenance.json")
    origin = {key: value for key, value in provenance.items() if isinstance(value, str)}
    return [
        DatasetSplit(
            name=f"{task}/{split}",
            digest=provenance["sha256"][split][:_DIGEST_LENGTH],
            source=json.dumps(origin, sort_keys=True),
            profile=json.dumps({"num_rows": rows}),
            context="testing" if split.startswith(("validation", "test")) else "training",
        )
        for split, rows in sorted(provenance["rows"].items())
    ]
