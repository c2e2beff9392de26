"""Greedy decoding with recurrent models: the definition, whatever the batch."""

import pytest

from tests.builders import recurrent_seq2seq
from tests.decoding.test_greedy import sources, target, uncached
from transformer.decoding.seq2seq.greedy import greedy_decode
from transformer.observer import Observer
from transformer.text.vocabulary import Vocabulary

__all__ = ["target"]  # the fixture


@pytest.mark.parametrize(
    ("attention", "end"),
    [("none", 0), ("bahdanau", 1), ("luong_dot", 1), ("luong_general", 1), ("luong_concat", 1)],
)
@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_decoding_equals_the_definition_for_every_batch_size(
    attention: str, end: int, batch_size: int, target: Vocabulary
) -> None:
    model = recurrent_seq2seq(attention=attention, hidden=24)
    for parameter in model.parameters():
        parameter.detach().mul_(3)  # the first weights nearly always repeat one token
    model.output.bias.detach()[target.end_id] += end
    decoded = greedy_decode(model, sources(), target, max_length=20, batch_size=batch_size, observer=Observer())
    assert decoded == [uncached(model, source, target, 20) for source in sources()]
    assert len({len(ids) for ids in decoded}) > 1, "all end together: the test would not see a row that leaves early"
