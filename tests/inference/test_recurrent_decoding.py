"""Decoding with recurrent models: equal to the definitions, whatever the batch."""

import pytest

from tests.builders import recurrent_seq2seq
from tests.inference import reference
from tests.inference.models import run, sources, vocabulary
from transformer.families.seq2seq.interface import Seq2SeqModel

ATTENTIONS = pytest.mark.parametrize(
    ("attention", "end"),
    [
        ("none", 0),
        ("luong_general", 1),
        *(pytest.param(name, 1, marks=pytest.mark.stress) for name in ("bahdanau", "luong_dot", "luong_concat")),
    ],
)


def lively(attention: str, end: int) -> Seq2SeqModel:
    """Initial weights nearly always repeat one token; larger ones do not, and `end` makes sentences end."""
    model = recurrent_seq2seq(attention=attention, hidden=24)
    for parameter in model.parameters():
        parameter.detach().mul_(3)
    model.output.bias.detach()[vocabulary(30).end_id] += end
    return model


@ATTENTIONS
@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_greedy_equals_the_definition_for_every_batch_size(attention: str, end: int, batch_size: int) -> None:
    model = lively(attention, end)
    decoded = [found[0].ids for found in run(model, sources(), batch_size=batch_size)]
    assert decoded == [reference.greedy(model, source, vocabulary(30), 20) for source in sources()]
    assert len({len(ids) for ids in decoded}) > 1, "all end together: the test would miss rows that leave early"


@ATTENTIONS
def test_beams_do_not_depend_on_the_batch(attention: str, end: int) -> None:
    model = lively(attention, end)
    one, all_ = (run(model, sources(), method="beam", n_best=3, batch_size=size) for size in (1, 100))
    assert [[h.ids for h in found] for found in one] == [[h.ids for h in found] for found in all_]
    for found in all_:
        order = [(not hypothesis.finished, -hypothesis.score) for hypothesis in found]
        assert order == sorted(order)
