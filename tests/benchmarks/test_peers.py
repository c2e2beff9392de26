"""The peers compute the same as our models, so only their speed differs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.peers.nn_transformer import TorchTranslator
from benchmarks.peers.straightforward import StraightforwardClassifier, StraightforwardTranslator, load_into_ours
from tests.benchmarks.weights import distinct, load_into_nn_transformer, load_into_straightforward
from tests.builders import classifier, seq2seq
from tests.inference.models import params, vocabulary
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids, padded
from transformer.families.seq2seq.decode import translate
from transformer.families.seq2seq.engines import CTranslate2Decoder
from transformer.families.seq2seq.formats import write_ctranslate2
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.torch_translator import TorchGenerator

LIMIT = 12
TARGETS = torch.tensor([[2, 5, 7, 9, 11], [2, 6, 8, 0, 0], [2, 4, 0, 0, 0], [2, 5, 5, 5, 0], [2, 9, 4, 7, 3], [2] * 5])
"""Padded at the end."""


@pytest.fixture
def ours() -> Seq2SeqTransformer:
    return distinct()


@pytest.fixture
def sources() -> list[Ids]:
    """Sentences of different lengths, between begin and end token."""
    torch.manual_seed(1)
    return [torch.tensor([2, *torch.randint(4, 40, (length,)).tolist(), 3]).numpy() for length in (3, 9, 1, 6, 9, 5)]


@pytest.mark.parametrize("kind", ["straightforward", "torch", "marian"])
def test_logits_are_ours_with_our_weights(kind: str, ours: Seq2SeqTransformer, sources: list[Ids]) -> None:
    if kind == "straightforward":
        peer: nn.Module = StraightforwardTranslator(ours.config)
        load_into_straightforward(peer, ours)
        other = seq2seq().float()
        load_into_ours(peer, other)
        assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in ours.state_dict().items())
    elif kind == "torch":
        peer = TorchTranslator(ours.config)
        load_into_nn_transformer(peer, ours)
    else:
        from benchmarks.peers.marian import MarianTranslator  # the library takes 4 s to import, in every process

        peer = MarianTranslator(ours.config, vocabulary(30))
        peer.load_ours(ours)
    source, target = torch.from_numpy(padded(sources, 0)), TARGETS
    with torch.no_grad():
        expected = ours.double().output(ours(source, target))
        found = peer.double().eval()(source, target)
    torch.testing.assert_close(found[target != 0], expected[target != 0])


def test_the_straightforward_classifier_has_our_logits(sources: list[Ids]) -> None:
    ours = classifier(positions="sinusoidal")
    params: Any = ours.config.model
    peer, ids = StraightforwardClassifier(params, 40, 0, 2).double().eval(), torch.from_numpy(padded(sources, 0))
    load_into_straightforward(peer, ours)
    with torch.no_grad():
        torch.testing.assert_close(peer(ids), ours(ids))


@pytest.mark.parametrize("changes", [{"norm": "pre"}, {"positions": "rotary"}, {"positions": "none"}])
def test_peers_refuse_what_they_cannot_express(changes: dict[str, str]) -> None:
    from benchmarks.peers.marian import MarianTranslator

    config = seq2seq(**changes).config
    for build in (StraightforwardTranslator, TorchTranslator, lambda each: MarianTranslator(each, vocabulary(30))):
        with pytest.raises(UserError, match="profile `seed`"):
            build(config)


def test_all_decoders_find_the_same(ours: Seq2SeqTransformer, sources: list[Ids], tmp_path: Path) -> None:
    from benchmarks.peers.marian import MarianDecoder, MarianTranslator

    target, decoding = vocabulary(30), params(max_length=LIMIT)

    found: list[list[int]] = [[0] * LIMIT]
    while {len(ids) for ids in found} == {LIMIT}:
        with torch.no_grad():
            ours.output.bias[target.end_id] += 0.5  # until some sentences end on their own
        answers = translate(TorchGenerator(ours, target), sources, target, decoding, Observer())
        found = [hypotheses[0].ids for hypotheses in answers]
    assert max(len(ids) for ids in found) > 0
    marian = MarianTranslator(ours.config, target).eval()
    marian.load_ours(ours)
    write_ctranslate2(tmp_path / "converted", ours, vocabulary(40), target, int8=False)
    engine = CTranslate2Decoder(tmp_path / "converted", vocabulary(40), target, positions=32, threads=1)
    for decoder in (MarianDecoder(marian.marian), engine):
        answers = decoder(sources, params(max_length=LIMIT, batch_size=4), Observer(), None)
        assert [hypotheses[0].ids for hypotheses in answers] == found
