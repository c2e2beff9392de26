"""Ten updates and a decoding of every kind of model, as digests.

`python -m tests.system.portable.kinds FOLDER [KIND...]`.

FOLDER keeps the corpora. The pins must be set before the process starts. `digests.json` has what this prints.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tests.builders import NGRAMS as NGRAM_MODEL
from tests.training.golden import POST, RECURRENT, EnoughError, Losses
from tests.training.small import prepare, run_stage, smoke
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.paths import Paths
from transformer.core.task import open_task
from transformer.nn.trained import WEIGHTS
from transformer.training.loop import fit

RECORDED = Path(__file__).with_name("digests.json")
THREADS, UPDATES, STEPS = 2, 10, 8
PRE = {"positions": "rotary", "activation": "gelu", "attention_dropout": 0.1, "activation_dropout": 0.1}
LSTM = {"cell": "lstm", "attention": "bahdanau"}
LOCAL = {"attention": "luong_general", "local_window": 3}
CLASSIFIER = {"cell": "gru", "layers": 2, "embedding": 8, "hidden": 12, "bidirectional": True, "dropout": 0.1}
NGRAMS = NGRAM_MODEL.model_dump() | {"features": 400, "vectors": 16, "vector_ngrams": 300, "vector_strength": 0.1}
KINDS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "translation, post-norm": ("translation", {"model": POST, "train": {"label_smoothing": 0.1}}),
    "translation, pre-norm": ("translation", {"model": PRE | {"tie_embeddings": "target"}, "train": {"r_drop": 1.0}}),
    "translation, LSTM with additive attention": ("translation", {"model": RECURRENT | LSTM}),
    "translation, GRU with local attention": ("translation", {"model": RECURRENT | LOCAL}),
    "classifier, transformer": ("sentiment", {"model": {"pooling": "attention", "norm": "pre"}}),
    "classifier, recurrent": (
        "sentiment",
        {"model": CLASSIFIER | {"kind": "recurrent", "max_length": 64, "pooling": "mean"}},
    ),
    "classifier, n-grams": ("sentiment", {"model": NGRAMS | {"pretrained": "data/local/none"}}),
    "language, masked": ("language", {"model": {"objective": "masked"}}),
    "language, causal": ("language", {"model": {"objective": "causal"}}),
}
"""The task and what differs from the profile `smoke`, by the model's name."""


def digest(arrays: Iterable[NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def _content(kind: str) -> dict[str, Any]:
    task, changes = KINDS[kind]
    content = smoke(task, changes)
    content["hardware"] |= {"device": "cpu", "precision": "fp32", "threads": THREADS}
    content["runtime"]["log_every"] = 1
    content[task]["train"] |= {"epochs": 20, "patience": None}
    return content


def prepare_all(folder: Path) -> None:
    """Write what the kinds are trained on, which a digest otherwise begins with."""
    for kind, (task, _) in KINDS.items():
        if not (folder / task).exists():
            prepare(_content(kind), task, folder / task)


def digests(kind: str, folder: Path) -> dict[str, str]:
    """Of the weights after the updates, and of what the model then computes of the validation split."""
    content, task, data = _content(kind), KINDS[kind][0], folder / KINDS[kind][0]
    trained = folder / "trained"
    paths = Paths(data=data, models=folder, reports=folder)
    declared = open_task(task)
    if content[task]["model"]["kind"] == "ngrams":
        run_stage(content, task, "train", paths, Observer())
        return {"weights": hashlib.sha256((trained / WEIGHTS).read_bytes()).hexdigest()[:16]}
    module: Any = import_module(f"transformer.families.{declared.family.name}.train")
    params = stage_params(content, task, module.Params, where=Path("smoke"))
    opened = module.open_training(declared, params, paths, Observer())
    with suppress(EnoughError):
        fit(opened.trainable, opened.params, opened.compute, log_every=1, observer=Losses(UPDATES))
    model = opened.trainable.model.eval()
    with torch.inference_mode():
        found = _decoded(task, opened.trainable, model)
    return {"weights": digest(weights.numpy() for weights in model.state_dict().values()), "decoding": digest(found)}


def _decoded(task: str, training: Any, model: Any) -> list[NDArray[Any]]:
    """The log probabilities of greedy decoding, or the logits where nothing is generated."""
    rows = np.arange(len(training.validation.lengths))
    first = training.validation.batch(rows, torch.device("cpu"))[0]
    if task == "sentiment" or not (task == "translation" or model.causal):
        return [(model(first) if task == "sentiment" else model.logits(model(first))).numpy()]
    beginning = first if task == "translation" else first[:, :1]
    logits, cache, last, found = getattr(model, "logits", None) or model.output, model.start(beginning), first[:, 0], []
    for _ in range(STEPS):
        scores = logits(model.step(last, cache)).log_softmax(dim=-1)
        last = scores.argmax(dim=-1)
        found.append(scores.numpy())
    return found


def main() -> None:
    """Print the digests of these kinds, or of all."""
    folder = Path(sys.argv[1])
    prepare_all(folder)
    found = {kind: digests(kind, folder) for kind in sys.argv[2:] or KINDS}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
