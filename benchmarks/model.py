"""The translation model for decoding benchmarks, and the sentences that it translates.

Speed depends on the lengths of a model's outputs, so the model is trained: an exported bundle, or by default the seed's
model after a short training run, which is kept for the next benchmark.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

import transformer
from benchmarks.harness import Options
from benchmarks.training import OurLoop
from benchmarks.translation import open_task, our_training
from transformer.checkpoint.trained import save_trained, unique_state
from transformer.core.errors import UserError
from transformer.core.files import read_rows
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator
from transformer.families.seq2seq.evaluation.evaluate import Params as EvaluateParams
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer
from transformer.training.batches import random_batches


class Subject(NamedTuple):
    """The model to measure, and its input."""

    model: Seq2SeqTransformer
    source: Vocabulary
    target: Vocabulary
    sentences: Sequence[Ids]
    """Encoded sources of the test split."""
    decoding: DecodingParams
    """The seed's: greedy, 128 sentences per batch."""
    origin: str
    """Where the model comes from."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select the model and the sentences."""
    parser.add_argument("--model", type=Path, help="an exported bundle (default: the seed's model, trained briefly)")
    parser.add_argument("--train-steps", type=int, default=150, help="updates of the short training run (default: 150)")
    parser.add_argument("--sentences", type=int, default=400, help="first sentences of the test split (default: 400)")


def open_subject(options: Options, device: torch.device) -> Subject:
    """The model on `device`, in fp32. Raises UserError."""
    task = open_task(options)
    data = task.workspace.data("translation")
    decoding = task.workspace.params("translation", EvaluateParams).evaluate
    bundle, steps = options.more.model, options.more.train_steps
    if bundle is None:
        folder = task.workspace.root / "models" / f"short-{steps}"
        stamp = (data / "stamp").read_text()
        if not (folder / "stamp").is_file() or (folder / "stamp").read_text() != stamp:
            (folder / "stamp").unlink(missing_ok=True)
            _train(options, folder, steps)
            (folder / "stamp").write_text(stamp)
        translator = TorchTranslator(folder, data / "vocab", data / "tokens", decoding, device)
    else:
        opened = transformer.load(bundle, device=device.type)
        if not isinstance(opened, TorchTranslator):
            raise UserError(f"{bundle} is not a translation Transformer: name such a bundle, or leave out --model")
        translator = opened
    if not isinstance(translator.model, Seq2SeqTransformer):
        raise UserError(f"{bundle} is not a translation Transformer: name such a bundle, or leave out --model")
    language, corpus = str(translator.pretokenizers["source"].language), data / "corpus" / "test.jsonl"
    rows = list(islice(read_rows(corpus), options.more.sentences))
    if language not in rows[0]:
        raise UserError(f"{bundle} translates from {language}, but {corpus} has no `{language}`: set --data")
    texts = [row[language] for row in rows]
    source, target = (translator.vocabularies[side] for side in ("source", "target"))
    origin = f"{steps} updates" if bundle is None else "an exported bundle"
    return Subject(translator.model, source, target, source.encode(translator.pretokenize(texts)), decoding, origin)


def _train(options: Options, folder: Path, steps: int) -> None:
    print(f"  training for {steps} updates", file=sys.stderr)
    task = open_task(options)
    params, training = task.params.train, our_training(task, options.compute)
    batches = random_batches(task.train.lengths.max(axis=1), params, 1)
    batches = (batches * -(-steps // len(batches)))[:steps]
    OurLoop(training, params, options.compute).steps(batches)
    state = {name: tensor.detach().cpu() for name, tensor in unique_state(training.model).items()}
    save_trained(folder, task.config, state)
