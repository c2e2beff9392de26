"""Our training loop and the peers' learn the same from the same batches."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.loops import OurLoop, Sample
from benchmarks.peers.straightforward import StraightforwardTranslator
from benchmarks.translation import Task, our_training, peer_loop
from benchmarks.workspace import Workspace
from tests.benchmarks.weights import load_into_straightforward
from tests.builders import LAYERS, SEQ2SEQ_TRAIN, TRAIN, small_runtime
from transformer.core.validation import Hardware
from transformer.data.store import ColumnWriter, Sequences
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.pairs import EncodedPairs
from transformer.families.seq2seq.train import Params
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.nn.device import Compute


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Twelve pairs of random words, and no dropout."""
    generator = np.random.default_rng(1)
    for side in ("source", "target"):
        sentences = [np.array([2, *generator.integers(4, 20, length), 3]) for length in generator.integers(1, 9, 12)]
        ColumnWriter(tmp_path / "train", side, 20).write([Sequences.of(sentences)])
    model = Seq2SeqParams(**LAYERS, encoder_layers=1, decoder_layers=1, tie_embeddings="none")
    config = Seq2SeqConfig(model=model, source_size=20, target_size=20, source_pad_id=0, target_pad_id=0)
    params = Params(
        model=model,
        train=Seq2SeqTrainParams(**TRAIN | SEQ2SEQ_TRAIN | {"learning_rate": 0.01, "clip": 1.0}),
        hardware=Hardware(device="cpu", precision="fp32", threads=1, deterministic=False, portable=False),
        runtime=small_runtime(),
    )
    pairs = EncodedPairs(tmp_path / "train", config)
    return Task(Workspace(tmp_path), params, config, pairs, pairs, {})


def test_losses_are_the_same_step_by_step(task: Task) -> None:
    compute = Compute(torch.device("cpu"), "fp32")
    training = our_training(task, compute)
    model = StraightforwardTranslator(task.config)
    load_into_straightforward(model, training.model)
    batches = [np.arange(start, start + 4) for start in (0, 4, 8, 0, 4, 8)]
    ours = OurLoop(training, task.params.train, compute).steps(batches)
    theirs = peer_loop(model, task, compute.device).steps(batches)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-4)
    assert ours.losses[-1] < ours.losses[0]
    assert ours.seconds > 0


def test_all_contenders_get_the_same_rows() -> None:
    lengths = np.random.default_rng(2).integers(3, 40, 100)
    sample = Sample(lengths, steps=4, batch_size=8)
    random, bucketed = sample.random(1), sample.bucketed(1)
    assert [len(batch) for batch in random] == [len(batch) for batch in bucketed] == [8] * 4
    assert sorted(np.concatenate(random)) == sorted(np.concatenate(bucketed))
    spread = [sum(np.ptp(lengths[batch]) for batch in batches) for batches in (random, bucketed)]
    assert spread[1] < spread[0] / 2
    assert sorted(np.concatenate(sample.random(2))) != sorted(np.concatenate(random))
