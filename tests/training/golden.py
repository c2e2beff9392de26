"""The first updates of every variant on the sample corpus. `python -m tests.training.golden` records them anew."""

import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.training.small import prepare, smoke, train
from transformer.core.observer import Observer

RECORDED = Path(__file__).with_name("golden.json")
UPDATES = 20
POST = {"norm": "post", "positions": "learned", "embedding_init": "xavier", "dropout": 0.1}
BPE: dict[str, dict[str, Any]] = {
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300},
    "tokenize": {"kind": "none"},
}
RECURRENT = {
    "kind": "recurrent",
    "cell": "gru",
    "attention": "none",
    "local_window": None,
    "embedding": 16,
    "hidden": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "bidirectional": True,
    "dropout": 0.1,
    "max_length": 64,
    "teacher_forcing": 1.0,
}
CHANGES: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "post-norm, learned positions": ("translation", {"model": POST}),
    "pre-norm, sinusoidal positions": ("translation", {}),
    "scaled residuals": ("translation", {"model": POST | {"residual_init": "scaled"}}),
    "rotary positions": ("translation", {"model": {"positions": "rotary"}}),
    "no positions, GELU": ("translation", {"model": {"positions": "none", "activation": "gelu"}}),
    "all dropouts": (
        "translation",
        {"model": {"dropout": 0.2, "attention_dropout": 0.1, "activation_dropout": 0.1}},
    ),
    "free head dimension": ("translation", {"model": {"heads": 3, "head_dim": 5}}),
    "target embedding tied": ("translation", {"model": {"tie_embeddings": "target"}}),
    "unscaled embeddings": ("translation", {"model": {"scale_embeddings": False}}),
    "Noam, Adam of the paper, label smoothing": (
        "translation",
        {
            "train": {
                "schedule": "noam",
                "learning_rate": 1.0,
                "warmup": 10,
                "betas": [0.9, 0.98],
                "epsilon": 1e-9,
                "label_smoothing": 0.1,
            }
        },
    ),
    "AdamW, cosine": (
        "translation",
        {"train": {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "learning_rate": 0.01}},
    ),
    "R-Drop, linear": (
        "translation",
        {"model": {"dropout": 0.2}, "train": {"r_drop": 1.0, "schedule": "linear", "learning_rate": 0.01}},
    ),
    "SimCut, linear": (
        "translation",
        {
            "model": {"dropout": 0.2},
            "train": {"simcut": 1.0, "cutoff": 0.1, "schedule": "linear", "learning_rate": 0.01},
        },
    ),
    "at first in both directions": ("translation", BPE | {"train": {"bidirectional_epochs": 1}}),
    "word dropout": ("translation", {"train": {"word_dropout": 0.2}}),
    "token batches, accumulation": (
        "translation",
        {"train": {"batch_unit": "tokens", "batch_size": 100, "accumulation": 2}},
    ),
    "classifier, first token": ("sentiment", {"model": {"pooling": "first"}}),
    "classifier, [CLS]": ("sentiment", {"model": {"pooling": "cls"}}),
    "classifier, mean": ("sentiment", {"model": {"pooling": "mean"}}),
    "classifier, rotary positions": ("sentiment", {"model": {"positions": "rotary"}}),
    "classifier, word dropout": ("sentiment", {"train": {"word_dropout": 0.3}}),
    "classifier, max": ("sentiment", {"model": {"pooling": "max"}}),
    "classifier, attention": ("sentiment", {"model": {"pooling": "attention"}}),
    "GRU without attention": ("translation", {"model": RECURRENT}),
    "GRU, teacher forcing": ("translation", {"model": RECURRENT | {"teacher_forcing": 0.5}}),
    "LSTM, Bahdanau": ("translation", {"model": RECURRENT | {"cell": "lstm", "attention": "bahdanau"}}),
    "GRU, Luong dot": (
        "translation",
        {"model": RECURRENT | {"attention": "luong_dot", "bidirectional": False, "hidden": 16}},
    ),
    "GRU, Luong general, local": (
        "translation",
        {"model": RECURRENT | {"attention": "luong_general", "local_window": 3}},
    ),
    "GRU, Luong scaled general": ("translation", {"model": RECURRENT | {"attention": "luong_scaled_general"}}),
    "LSTM, Luong concat": ("translation", {"model": RECURRENT | {"cell": "lstm", "attention": "luong_concat"}}),
    "classifier, LSTM": (
        "sentiment",
        {
            "model": {
                "kind": "recurrent",
                "cell": "lstm",
                "layers": 1,
                "embedding": 8,
                "hidden": 8,
                "bidirectional": True,
                "dropout": 0.1,
                "max_length": 64,
                "pooling": "max",
            }
        },
    ),
}
"""The task and what differs from the profile `smoke`, by the variant's name."""


class _EnoughError(Exception):
    """All that is compared is there; the rest of the training would change nothing."""


class _Losses(Observer):
    def __init__(self) -> None:
        self.values: list[float] = []

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        if "train_loss" in values:
            self.values.append(values["train_loss"])
        if len(self.values) == UPDATES:
            raise _EnoughError


def losses(variant: str, folder: Path) -> list[float]:
    """The training loss of the first updates, in fp32 on one thread; `folder` keeps the corpora between variants."""
    task, changes = CHANGES[variant]
    content = smoke(task, changes)
    content[task]["train"] |= {"epochs": 20, "patience": None}
    content["runtime"]["log_every"] = 1
    data = folder / task / str(hash(json.dumps({name: changes.get(name) for name in ("tokenize", "vocab")})))
    if not data.exists():
        prepare(content, task, data)
    observer = _Losses()
    with suppress(_EnoughError):
        train(content, task, data, data, observer=observer)
    return observer.values


def main() -> None:
    """Record the losses of all variants, or of those named."""
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for variant in sys.argv[1:] or CHANGES:
            recorded[variant] = [round(loss, 6) for loss in losses(variant, Path(folder))]
    RECORDED.write_text(json.dumps({name: recorded[name] for name in CHANGES if name in recorded}, indent=1) + "\n")


if __name__ == "__main__":
    main()
