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
_SIZES = {"embedding": 16, "hidden": 16, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1, "max_length": 64}
_ATTENTION = {"attention": "none", "local_window": None, "teacher_forcing": 1.0}
RECURRENT: dict[str, Any] = {"kind": "recurrent", "cell": "gru", "bidirectional": True} | _SIZES | _ATTENTION
_CLASSIFIER = {"kind": "recurrent", "cell": "lstm", "layers": 1, "embedding": 8, "hidden": 8, "bidirectional": True}
_BPE = {"kind": "bpe", "joint": True, "max_size": 300}
_NOAM = {"schedule": "noam", "learning_rate": 1.0, "warmup": 10, "betas": [0.9, 0.98], "epsilon": 1e-9}
_LINEAR = {"schedule": "linear", "learning_rate": 0.01}
_TRAIN: dict[str, dict[str, Any]] = {
    "Noam, Adam of the paper, label smoothing": _NOAM | {"label_smoothing": 0.1},
    "AdamW, cosine": {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "learning_rate": 0.01},
    "R-Drop, linear": _LINEAR | {"r_drop": 1.0},
    "SimCut, linear": _LINEAR | {"simcut": 1.0, "cutoff": 0.1},
    "at first in both directions": {"bidirectional_epochs": 1},
    "word dropout": {"word_dropout": 0.2},
    "token batches, accumulation": {"batch_unit": "tokens", "batch_size": 100, "accumulation": 2},
    "classifier, word dropout": {"word_dropout": 0.3},
}
_MODEL: dict[str, dict[str, Any]] = {
    "post-norm, learned positions": POST,
    "pre-norm, sinusoidal positions": {},
    "scaled residuals": POST | {"residual_init": "scaled"},
    "rotary positions": {"positions": "rotary"},
    "no positions, GELU": {"positions": "none", "activation": "gelu"},
    "all dropouts": {"dropout": 0.2, "attention_dropout": 0.1, "activation_dropout": 0.1},
    "free head dimension": {"heads": 3, "head_dim": 5},
    "target embedding tied": {"tie_embeddings": "target"},
    "unscaled embeddings": {"scale_embeddings": False},
    "R-Drop, linear": {"dropout": 0.2},
    "SimCut, linear": {"dropout": 0.2},
    "classifier, first token": {"pooling": "first"},
    "classifier, [CLS]": {"pooling": "cls"},
    "classifier, mean": {"pooling": "mean"},
    "classifier, rotary positions": {"positions": "rotary"},
    "classifier, max": {"pooling": "max"},
    "classifier, attention": {"pooling": "attention"},
    "GRU without attention": RECURRENT,
    "GRU, teacher forcing": RECURRENT | {"teacher_forcing": 0.5},
    "LSTM, Bahdanau": RECURRENT | {"cell": "lstm", "attention": "bahdanau"},
    "GRU, Luong dot": RECURRENT | {"attention": "luong_dot", "bidirectional": False, "hidden": 16},
    "GRU, Luong general, local": RECURRENT | {"attention": "luong_general", "local_window": 3},
    "GRU, Luong scaled general": RECURRENT | {"attention": "luong_scaled_general"},
    "LSTM, Luong concat": RECURRENT | {"cell": "lstm", "attention": "luong_concat"},
    "classifier, LSTM": _CLASSIFIER | {"dropout": 0.1, "max_length": 64, "pooling": "max"},
}
VARIANTS = [*dict.fromkeys([*_MODEL, *_TRAIN])]


class EnoughError(Exception):
    """All that is compared is there; the rest of the training would change nothing."""


class Losses(Observer):
    """The training loss of each of the first updates, after which it ends the training."""

    def __init__(self, updates: int) -> None:
        self.values, self._updates = list[float](), updates

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        if "train_loss" in values:
            self.values.append(values["train_loss"])
        if len(self.values) == self._updates:
            raise EnoughError


def losses(variant: str, folder: Path) -> list[float]:
    """The training loss of the first updates, in fp32 on one thread; `folder` keeps the corpora between variants."""
    task = "sentiment" if variant.startswith("classifier") else "translation"
    changes = {"model": _MODEL.get(variant, {}), "train": _TRAIN.get(variant, {})}
    if variant == "at first in both directions":
        changes |= {"vocab": _BPE, "tokenize": {"kind": "none"}}
    content = smoke(task, changes)
    content[task]["train"] |= {"epochs": 20, "patience": None}
    content["runtime"]["log_every"] = 1
    data = folder / task / content[task]["vocab"]["kind"]
    if not data.exists():
        prepare(content, task, data)
    observer = Losses(UPDATES)
    with suppress(EnoughError):
        train(content, task, data, data, observer=observer)
    return observer.values


def main() -> None:
    """Record the losses of all variants, or of those named."""
    recorded = json.loads(RECORDED.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for variant in sys.argv[1:] or VARIANTS:
            recorded[variant] = [round(loss, 6) for loss in losses(variant, Path(folder))]
    RECORDED.write_text(json.dumps({name: recorded[name] for name in recorded if name in VARIANTS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
