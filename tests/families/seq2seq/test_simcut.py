"""SimCut compares a pass with one that goes without some of the tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.builders import LAYERS, SEQ2SEQ_TRAIN, TRAIN
from tests.training.golden import RECURRENT
from tests.training.line import CPU
from transformer.data.store import ColumnWriter, Sequences
from transformer.families.seq2seq.interface import RecurrentParams, Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.pairs import EncodedPairs, next_token_states
from transformer.families.seq2seq.train import Seq2SeqTraining
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.nn.dropout import token_cutoff

ROWS = np.arange(6)
WEIGHT, CUTOFF = 2.0, 0.3


@pytest.fixture(params=["transformer", "recurrent"])
def training(request: pytest.FixtureRequest, tmp_path: Path) -> Seq2SeqTraining:
    """Six pairs of random words, and no dropout."""
    generator = np.random.default_rng(1)
    for side in ("source", "target"):
        sentences = [np.array([2, *generator.integers(4, 20, length), 3]) for length in generator.integers(2, 9, 6)]
        ColumnWriter(tmp_path / "train", side, 20).write([Sequences.of(sentences)])
    model: Any = Seq2SeqParams(**LAYERS, encoder_layers=1, decoder_layers=1, tie_embeddings="all")
    if request.param == "recurrent":
        changed: dict[str, Any] = {"dropout": 0.0, "attention": "bahdanau"}
        model = RecurrentParams(**RECURRENT | changed)
    config = Seq2SeqConfig(model=model, source_size=20, target_size=20, source_pad_id=0, target_pad_id=0)
    pairs = EncodedPairs(tmp_path / "train", config)
    params = Seq2SeqTrainParams(**TRAIN | SEQ2SEQ_TRAIN | {"simcut": WEIGHT, "cutoff": CUTOFF})
    return Seq2SeqTraining(pairs, pairs, params, CPU, None)


def test_the_loss_is_that_of_the_whole_pass_and_the_divergence_from_it(training: Seq2SeqTraining) -> None:
    model = training.model
    torch.manual_seed(3)
    found = training.loss(ROWS)
    torch.manual_seed(3)
    batch = training.train.batch(ROWS, CPU.device)
    states, classes = next_token_states(model, *batch)
    with token_cutoff(model.token_tables(), CUTOFF):
        cut, _ = next_token_states(model, *batch)
    one, two = (model.output(each).log_softmax(-1) for each in (states, cut))
    divergence = F.kl_div(two, one, reduction="sum", log_target=True)
    plain = F.nll_loss(one, classes, reduction="sum")
    assert {*map(id, model.token_tables())} == {
        id(each) for each in model.modules() if isinstance(each, torch.nn.Embedding) and each.num_embeddings == 20
    }
    assert divergence > 0.01
    torch.testing.assert_close(found.total, plain + WEIGHT * divergence)
    torch.testing.assert_close(found.nll, plain)


@pytest.mark.parametrize("weight", ["r_drop", "simcut"])
def test_the_second_pass_begins_with_its_epoch(weight: str, training: Seq2SeqTraining) -> None:
    changed = {"simcut": 0.0, "consistency_from": 3, "word_dropout": 0.5} | {weight: WEIGHT}
    training.params = training.params.model_copy(update=changed)
    adds = []
    for epoch in (1, 2, 3, 4, 2):
        training.batches(epoch)
        loss = training.loss(ROWS)
        adds.append(bool(loss.total > loss.nll * 1.0001))
    assert adds == [False, False, True, True, False]
    assert [training.cost(epoch) for epoch in (1, 2, 3, 4)] == [1, 1, 2, 2]
