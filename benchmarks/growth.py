"""How the cost of a training step grows with vocabulary, sentence length and model size: `python -m benchmarks.growth`.

The seed's translation model with one size changed at a time, on random words: all batches have the same number of
target tokens, so that times are comparable, and all sentences of a batch have the same length.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Options, Report, Table, Work, main, measured
from benchmarks.training import OurLoop
from benchmarks.workspace import ROOT
from transformer.commands.profiles import profile_values
from transformer.core.params import stage_params
from transformer.encoded.store import ColumnWriter, Sequences
from transformer.families.seq2seq.data.encoded import EncodedPairs
from transformer.families.seq2seq.nn.config import Seq2SeqConfig
from transformer.families.seq2seq.nn.training import Seq2SeqTrainParams
from transformer.families.seq2seq.train import Params, Seq2SeqTraining
from transformer.nn.layers import count_parameters

TOKENS = 2048
"""Target tokens per batch, and as many source tokens."""


class Size(NamedTuple):
    """The sizes that are varied; by default the seed's."""

    vocabulary: int = 8000
    """Number of source words, and of target words."""
    length: int = 16
    """Tokens per sentence."""
    model: Mapping[str, Any] = {}
    """Changed parameters of the model."""


SERIES: Mapping[str, Mapping[str, Size]] = {
    "Words of each vocabulary": {f"{words:,}": Size(vocabulary=words) for words in (2000, 8000, 32_000)},
    "Tokens of a sentence": {str(length): Size(length=length) for length in (16, 64, 256)},
    "d_model (d_ff = 2 d_model)": {
        str(width): Size(model={"d_model": width, "d_ff": 2 * width}) for width in (128, 256, 512)
    },
    "Layers of encoder and decoder each": {
        str(layers): Size(model={"encoder_layers": layers, "decoder_layers": layers}) for layers in (1, 3, 6)
    },
}


def measure(options: Options) -> Report:
    """Milliseconds per step."""
    tables, parameters = [], {}
    for title, sizes in SERIES.items():
        with TemporaryDirectory() as folder:
            loops = {name: _loop(size, options, Path(folder, str(i))) for i, (name, size) in enumerate(sizes.items())}
            done = measured({name: partial(_work, loop) for name, loop in loops.items()}, options, warm=False)
        times = {name: [1000 * work.seconds / work.amount for work in works] for name, works in done.items()}
        tables.append(Table(title, "ms a step", times, next(iter(times))))
        parameters[title] = {name: count_parameters(loop.model) for name, loop in loops.items()}
    return Report(tables, {"target tokens a step": TOKENS, "parameters": parameters})


def _work(loop: OurLoop, number: int) -> Work:
    batches = loop.trainable.batches(number)
    return Work(len(batches) - 1, loop.steps(batches).seconds)  # the first one is not timed


def _loop(size: Size, options: Options, folder: Path) -> OurLoop:
    """Our training loop on `steps + 1` batches of random words."""
    pairs, train = random_pairs(size, options.more.steps, folder)
    return OurLoop(Seq2SeqTraining(pairs, pairs, train, options.compute, None), train, options.compute)


def random_pairs(size: Size, steps: int, folder: Path) -> tuple[EncodedPairs, Seq2SeqTrainParams]:
    """`steps + 1` batches of random words, the same each time; and how to train on them."""
    plain = stage_params(profile_values(ROOT, "seed"), "translation", Params, where=Path("seed"))
    rows = TOKENS // size.length
    model = plain.model.model_copy(update={"max_length": size.length, **size.model})
    train = plain.train.model_copy(update={"batch_size": rows})
    config = Seq2SeqConfig(
        model=model,
        source_size=size.vocabulary,
        target_size=size.vocabulary,
        source_pad_id=0,
        target_pad_id=0,
    )
    generator = np.random.default_rng(1)
    for side in ("source", "target"):
        words = generator.integers(4, size.vocabulary, (rows * (steps + 1), size.length - 2))
        ColumnWriter(folder / "train", side, size.vocabulary).write(
            [Sequences.of([np.array([2, *row, 3]) for row in words])]
        )
    return EncodedPairs(folder / "train", config), train


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=2, help="updates per round (default: 2)")


if __name__ == "__main__":
    main("growth", __doc__, measure, arguments=arguments, rounds=3)
