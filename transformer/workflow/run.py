"""The contents of a result's MLflow run. Nothing here uses MLflow's client."""

import hashlib
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ruamel.yaml.error import YAMLError

from transformer.core.code import CODE
from transformer.core.files import read_json, read_table
from transformer.core.params import leaves, parse
from transformer.core.task import PRETRAINING, open_task
from transformer.evaluation.headline import TEXT_BLEUS, headline, measured, shortfall, splits
from transformer.workflow.compare import languages
from transformer.workflow.git import blob, git, head
from transformer.workflow.pipeline import Pipeline, bundle_path
from transformer.workflow.results import Result, Times, times_of

_SECTIONS = ("download", "tokenize", "vocab", "model", "train", "evaluate", "convert", "hardware")
_PLACES = {"path", "added", "held_out", "repository", "revision", "expected_sha256"}
"""Leaves of `download` and `vocab` that locate a corpus; the data sets and the tag `corpus` identify it."""
_NAMED = 4
_KEY = 8
_MOST_METRICS = 40
_TRAINING = ("parameters", "steps", "epochs", "best_epoch")
_NOT_IN_NAMES = re.compile(r"^\.|[^\w\-. :]")  # MLflow takes dots and slashes only where they make a path
_NAME_LENGTH = 250  # MLflow's limits
VALUE_LENGTH = 5000
_UNFIT = re.compile(r"[^\w.-]+")
_CORPUS_LENGTH = 100


@dataclass(frozen=True)
class Origin:
    """Origin of a result."""

    commit: str | None
    """Commit that was checked out."""
    experiment: str | None
    """DVC's name of the experiment."""
    time: float
    """Seconds since 1970."""
    dirty: bool = False
    """True if the code had uncommitted changes."""


def current_origin(root: Path) -> Origin:
    """Return the current origin: the experiment that DVC names in the environment, or the checked-out commit."""
    commit = os.environ.get("DVC_EXP_BASELINE_REV") or head(root)
    dirty = bool(git(root, "status", "--porcelain", "--untracked-files=no", "--", *CODE))
    return Origin(commit, os.environ.get("DVC_EXP_NAME"), time.time(), dirty)


def work_of(result: Result, origin: Origin) -> tuple[int, int]:
    """Return when the stages' work began and ended, in milliseconds, without idle time between stages."""
    found = [times for stage in result.pipeline.stages if (times := times_of(result, stage))]
    end = max((times.end for times in found), default=origin.time)
    return int(1000 * (end - sum(map(_seconds, found)))), int(1000 * end)


def _seconds(times: Times) -> float:
    return times.end - times.start


def run_name(result: Result, origin: Origin) -> str:
    """Return a run's name: the differences from the committed parameters, the experiment, and the start of the key.

    Such as `d_model=512 dropout=0.3 0b1f7a52`; without differences `translation de-en 0b1f7a52`.
    """
    pipeline = result.pipeline
    changed = changes(pipeline, _committed(result.root, origin.commit))
    unchanged = [pipeline.task, "-".join(languages(pipeline))]
    name = " ".join(filter(None, [*(changed or unchanged), origin.experiment]))
    return f"{storable(name, _NAME_LENGTH - _KEY - 1)} {pipeline.key[:_KEY]}"


def _committed(root: Path, commit: str | None) -> dict[str, Any]:
    """Return the params.yaml of a commit; empty if there is none."""
    try:
        content = parse(blob(root, commit, "params.yaml").decode()) if commit else None
    except (YAMLError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def changes(pipeline: Pipeline, committed: Mapping[str, Any]) -> list[str]:
    """Return the hyperparameters that differ from a params.yaml, such as `d_model=512`: at most four, then a count.

    A name appears without its section if no other section has the same name.
    """
    own, other = hyperparameters(pipeline.task, pipeline.params), leaves(committed)
    other = {name.removeprefix(f"{pipeline.task}."): value for name, value in other.items()}
    named = Counter(name.rpartition(".")[2] for name in own)
    short = {name: leaf if named[leaf] == 1 else name for name in own for leaf in (name.rpartition(".")[2],)}
    found = [f"{short[name]}={_text(value)}" for name, value in own.items() if other and other.get(name, ...) != value]
    return [*found[:_NAMED], *([f"+{len(found) - _NAMED}"] if len(found) > _NAMED else [])]


def hyperparameters(task: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that affect a result, by name in params.yaml without the task; no local paths."""
    own = {name.removeprefix(f"{task}."): value for name, value in params.items()}
    wanted = {name: value for name, value in own.items() if name.partition(".")[0] in _SECTIONS}
    every = sorted(leaves(wanted).items())
    return {n: v for n, v in every if not (n.startswith(("download.", "vocab.")) and n.split(".")[1] in _PLACES)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def safe(values: Mapping[str, Any]) -> dict[str, str]:
    """Make names and values acceptable to MLflow and its databases, whatever their characters and length."""
    names = safe_names(values)
    return {names[name]: storable(value) for name, value in values.items()}


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Map names of parameters, metrics or tags to ones that MLflow and its databases take, no two to the same.

    Those that would collide, also in a database that ignores case, or are too long, end in a hash of the original.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        allowed = _NOT_IN_NAMES.sub("_", name) or "_"
        if allowed.casefold() in taken or len(allowed) > _NAME_LENGTH:
            digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
            allowed = f"{allowed[: _NAME_LENGTH - _KEY - 1]}_{digest[:_KEY]}"
        found[name] = allowed
        taken.add(allowed.casefold())
    return found


def storable(value: Any, length: int = VALUE_LENGTH) -> str:
    """Return a value as text that MLflow and its databases take: no null, no half of a surrogate pair, not too long."""
    return _text(value).replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()[:length]


def metrics(task: str, reports: Path) -> dict[str, float]:
    """Return the metrics for model selection, at most 40 with the curves; all others are in evaluation.json.

    reports: the folder with the task's reports.
    """
    evaluation, training = read_json(reports / "evaluation.json"), read_json(reports / "training.json")
    main = open_task(task).family.headline
    wanted = (*main, *TEXT_BLEUS, *(f"{metric}_minus_linear" for metric in main))
    first, *rest = splits(evaluation)
    scores = {
        f"{split}.{name}": evaluation[split][name]
        for split in (first, *sorted(rest, key=lambda split: not split.startswith("validation")))
        for name in wanted
        if name in evaluation[split]
    }
    found = {**scores, **{name: training[name] for name in _TRAINING if name in training}}
    if (reports / "conversion.json").is_file():
        sizes = read_json(reports / "conversion.json")
        found |= {f"{engine}.bytes": each["bytes"] for engine, each in sizes.items() if "bytes" in each}
    finite = [(name, float(value)) for name, value in found.items() if math.isfinite(value)]
    return dict(finite[: _MOST_METRICS - len({name for name, _, _ in curves(reports)})])


def curves(reports: Path) -> list[tuple[str, float, int]]:
    """Return the points of history.tsv: every column but `epoch` and `step`, its value and step; no empty cells."""
    return [
        (column, float(cell), int(float(row["step"])))
        for row in read_table(reports / "history.tsv")
        for column, cell in row.items()
        if column not in ("epoch", "step") and cell and math.isfinite(float(cell))
    ]


def tags(result: Result, origin: Origin, folder: Path) -> dict[str, str]:
    """Return a run's tags, which describe its result; folder: has the result's files at their own paths."""
    task, pipeline = result.task, result.pipeline
    provenance = read_json(folder / "data" / task / "corpus" / "provenance.json")
    corpus = " ".join(str(provenance[name]) for name in ("source", "configuration", "revision") if provenance.get(name))
    pretraining = folder / bundle_path(task) / "model" / PRETRAINING
    found = {
        "mlflow.source.name": "dvc.yaml",
        "task": task,
        "key": pipeline.key,
        "corpus": corpus + (f" and {provenance['added_rows']} added rows" if "added_rows" in provenance else ""),
        "code": hashlib.sha256(json.dumps(pipeline.code, sort_keys=True).encode()).hexdigest()[:16],
        "code.accepted": ", ".join(result.accepted()),
        "git.commit": origin.commit,
        "git.dirty": "true" if origin.dirty else "",
        "dvc.experiment": origin.experiment,
        "pretraining": read_json(pretraining)["sha256"] if pretraining.is_file() else "",
    }
    return {name: value for name, value in found.items() if value}


def description(task: str, reports: Path) -> str:
    """Return the headline and the baselines that the model does not beat."""
    evaluation = read_json(reports / "evaluation.json")
    main = open_task(task).family.headline
    line = next(filter(None, (headline(name, evaluation) for name in main)), "")
    return ". ".join(filter(None, (line, shortfall(evaluation))))


def has_page(reports: Path, result: Result) -> bool:
    """True if the page in a folder of reports shows this result."""
    noted = reports / "result.json"
    return (reports / "report.html").is_file() and noted.is_file() and read_json(noted)["key"] == result.pipeline.key


def version_tags(result: Result, origin: Origin, folder: Path) -> dict[str, str]:
    """Return the tags by which registered versions compete: versions of one group are comparable."""
    task = result.task
    metric = read_json(folder / bundle_path(task) / "config.json")["main_metric"]
    evaluation = read_json(folder / "reports" / task / "evaluation.json")
    provenance = read_json(folder / "data" / task / "corpus" / "provenance.json")
    group = {
        "validation texts": provenance["sha256"]["validation"],
        "languages": "-".join(languages(result.pipeline)),
        "metric": metric["name"],
        "metric's settings": measured(metric["name"].partition(".")[2], evaluation),
    }
    return {
        "key": result.pipeline.key,
        "alias": str(result.pipeline.section("export")["alias"]),
        "group": json.dumps(group),
        "value": str(metric["value"]),
        "higher_is_better": str(metric["higher_is_better"]).lower(),
        "made": f"{origin.time:.3f}",
    }


def registered_name(pipeline: Pipeline) -> str:
    """Return `export.registered_name`, or a name made of the task, the languages and the corpus.

    Examples are `translation-de-en-multi30k` and `sentiment-imdb`. The corpus is `sample`, or the last part of the Hub
    repository's (and its configuration) or local folder's name.
    """
    given = pipeline.section("export")["registered_name"]
    if given is not None:
        return str(given)
    return "-".join([pipeline.task, *languages(pipeline), _corpus(pipeline.section("download"))])


def _corpus(download: Mapping[str, Any]) -> str:
    source = download["source"]
    if source == "sample":
        return "sample"
    name = PurePath(str(download["repository" if source == "hub" else "path"])).name
    if source == "hub" and (configuration := download.get("configuration")):
        name = f"{name}-{configuration}"
    return _UNFIT.sub("-", name).strip("-.")[:_CORPUS_LENGTH] or "local"
