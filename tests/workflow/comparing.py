"""Results in a real git repository, for the tests of this folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML

from tests.kit import write_code_of
from transformer.core.code import ran_path
from transformer.core.files import write_table
from transformer.core.params import parameters_digest
from transformer.workflow.dvc import content_md5
from transformer.workflow.pipeline import REQUIRED

HEADER = ("split", "text", "label", "prediction", "probability")
PREDICTIONS = "reports/sentiment/predictions.tsv"
EVALUATION = "reports/sentiment/evaluation.json"
Answer = tuple[str, str, float]
GOOD: list[Answer] = [("positive", "positive", 0.9), ("negative", "negative", 0.8)] * 30
BAD: list[Answer] = [("positive", "negative", 0.7), ("negative", "negative", 0.8)] * 30


def write_result(
    root: Path,
    *,
    rate: float,
    module: str,
    answers: Sequence[Answer],
    corpus: str = "download",
    linear: float = 0.8,
    given: Mapping[str, str] = MappingProxyType({}),
    ran: Mapping[str, Any] = MappingProxyType({}),
    figures: Mapping[str, Any] = MappingProxyType({}),
    signatures: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """A complete result of the task `sentiment` as DVC leaves it in the workspace.

    given: what `train` read as well; ran: the parameters with which a stage says that it ran; figures: more scores.
    """
    rows = [("test", f"text {n}", *answer) for n, answer in enumerate(answers)]
    write_table(root / PREDICTIONS, HEADER, rows)
    right = sum(label == prediction for label, prediction, _ in answers) / len(answers)
    scores = {"accuracy": right, "f1": 0.5, "linear_accuracy": linear, **figures}
    (root / EVALUATION).write_text(json.dumps({"test": scores, "signatures": {"name": "text", **signatures}}))
    (root / "transformer/nn").mkdir(parents=True, exist_ok=True)
    (root / "transformer/nn/layers.py").write_text(f"x = '{module}'\n")
    outs = {stage: {f"data/sentiment/{stage}": stage} for stage in REQUIRED}
    outs["download"] = {"data/sentiment/corpus": corpus}
    outs["train"] = {"models/sentiment/trained": f"rate {rate}"}
    outs["evaluate"] = {path: content_md5((root / path).read_bytes()) for path in (EVALUATION, PREDICTIONS)}
    for stage, params in ran.items():
        path = root / ran_path(stage, "sentiment")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"parameters": parameters_digest(params), "code": None}))
        outs[stage][ran_path(stage, "sentiment")] = content_md5(path.read_bytes())
    deps = {
        "train": {**write_code_of(root, "train", "sentiment"), **given, **outs["build_vocab"]},
        "evaluate": outs["train"],
        "export": outs["evaluate"],
    }
    sections = {"tokenize": {"sentiment.tokenize": {}}, "train": {"sentiment.train": {"learning_rate": rate}}}
    stages: dict[str, Any] = {
        f"{stage}@sentiment": {
            "cmd": "true",
            "deps": [{"path": path, "md5": md5} for path, md5 in deps.get(stage, {}).items()],
            "params": {"params.yaml": sections[stage]} if stage in sections else {},
            "outs": [{"path": path, "md5": md5} for path, md5 in outs[stage].items()],
        }
        for stage in REQUIRED
    }
    YAML().dump({"schema": "2.0", "stages": stages}, root / "dvc.lock")
