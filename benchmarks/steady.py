"""Whether long-running work stays as fast as at its start, except Transformer training (`benchmarks.lasting`):
`python -m benchmarks.steady`, about a quarter of an hour.

Compares the time of the last tenth with the first: the seed's classifier on 25,000 reviews, in ten parts of equally
many random reviews; 400 updates of the recurrent models of the profile `rnn`; tokenize and build_vocab (encoding the
source side) on 1,000,000 sample pairs.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.harness import Limit, Options, Report, Table, main
from benchmarks.isolated import alone
from benchmarks.lasting import Training
from benchmarks.pipeline import corpus_of
from benchmarks.turns import BLOCK
from benchmarks.workspace import DATA_STAGES, FOLDER, ROOT, Workspace, ensure, new_workspace, prepared
from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware
from transformer.core.task import family_module, open_task
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.decoding.labels import class_logits
from transformer.families.classifier.decoding.with_torch import TorchScorer
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.model import build_model
from transformer.families.classifier.train import Params

T = TypeVar("T")
_PARTS = 10
_UPDATES = 400
_SKIPPED = 10_000
"""Rows skipped while worker processes start."""


def measure(options: Options) -> Report:
    """The time of the last tenth relative to the first."""
    works = {"evaluate, sentiment": _classify} | {
        f"train, recurrent, {task}": _recurrent(task) for task in ("translation", "sentiment")
    }
    works |= {
        f"{stage}, translation": _rows(stage, side) for stage, side in (("tokenize", ""), ("build_vocab", "source"))
    }
    ratios = {}
    for name, parts in works.items():
        times = parts(options)
        ratios[name] = [times[-1] / times[0]]
        print(f"  {name}  " + "  ".join(f"{seconds:.2f}" for seconds in times) + " s", file=sys.stderr)
    limits = [Limit(name, 1.05) for name in ratios]
    return Report([Table("Seconds of the last tenth", "of the first's", ratios, next(iter(ratios)), limits=limits)])


def _classify(options: Options) -> list[float]:
    workspace = prepared("sentiment", options.data)
    return alone(_seconds_of_reviews, (workspace.root, options.hardware), threads=options.hardware.threads)


def _seconds_of_reviews(given: tuple[Path, Hardware]) -> list[float]:
    workspace, hardware = Workspace(given[0]), given[1]
    params, data = workspace.params("sentiment", Params), workspace.data("sentiment")
    vocabulary = read_vocabularies(data / "vocab")["text"]
    config = ClassifierConfig(model=params.model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=2)
    model = build_model(config).to(prepare(hardware).device)
    reviews = EncodedTexts(data / "encoded" / "test", config)
    times, rows = [], np.random.default_rng(1).permutation(len(reviews))
    for part in np.array_split(rows, _PARTS):
        sequences = [reviews.sequence(int(row)) for row in part]
        started = time.perf_counter()
        class_logits(TorchScorer(model), sequences, batch_size=64, observer=Observer())
        times.append(time.perf_counter() - started)
    return times


def _recurrent(task: str) -> Callable[[Options], list[float]]:
    def seconds(options: Options) -> list[float]:
        workspace = new_workspace(FOLDER / "rnn", data=options.data, profile="rnn")
        ensure(workspace, task, DATA_STAGES, options.data)
        training = Training(workspace, task, _UPDATES, ROOT, options.hardware)
        part = _UPDATES // BLOCK // _PARTS
        turns = [training.turn() for _ in range(_UPDATES // BLOCK)]
        parts = [[taken for taken in turns[at : at + part] if taken] for at in range(0, len(turns), part)]
        return [part * sum(taken) / len(taken) for taken in parts]

    return seconds


class _Timed(Observer):
    """Records the time for each tenth of the rows of some work."""

    def __init__(self, what: str, rows: int) -> None:
        self._what, self._part = what, (rows - _SKIPPED) // _PARTS
        self.times: list[float] = []

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterable[T]:
        """The items, timed if this is that work."""
        return self._timed(iter(items)) if what == self._what else items

    def _timed(self, items: Iterator[T]) -> Iterator[T]:
        yield from islice(items, _SKIPPED)
        for _ in range(_PARTS):
            started = time.perf_counter()
            yield from islice(items, self._part)
            self.times.append(time.perf_counter() - started)
        yield from items


def _rows(stage: str, side: str = "") -> Callable[[Options], list[float]]:
    def seconds(options: Options) -> list[float]:
        workspace = corpus_of(options.more.pairs)  # with the tokens that `tokenize`, which comes first, has written
        return alone(_seconds_of_rows, (workspace.root, stage, side, options.more.pairs), threads=1)

    return seconds


def _seconds_of_rows(given: tuple[Path, str, str, int]) -> list[float]:
    root, stage, side, pairs = given
    workspace, task = Workspace(root), open_task("translation")
    work = family_module(task, stage)
    data, out = workspace.data("translation"), root / "out"
    timed = _Timed(f"encode train {side}" if side else "tokenize train", pairs)
    paths: dict[str, Any] = {"corpus": data / "corpus", "tokens": data / "tokens"}
    if stage == "build_vocab":
        paths = {"tokens": data / "tokens", "vocab": out / "v", "encoded": out / "e", "statistics": out / "s.json"}
    work.run(task, workspace.params("translation", work.Params), **paths, observer=timed)
    return timed.times


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of tokenize and build_vocab (default: 1,000,000)")


if __name__ == "__main__":
    main("steady", __doc__, measure, arguments=arguments)
