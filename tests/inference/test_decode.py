"""Properties of every method: batching does not matter, lengths are limited, repeated n-grams are blocked."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inference.models import params, run, sources, trained, vocabulary
from tests.inference.reference import repeats
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.families.seq2seq.decode import translate
from transformer.families.seq2seq.torch_translator import TorchGenerator

METHOD = pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
SENTENCES = st.lists(
    st.lists(st.integers(4, 39), min_size=1, max_size=32).map(lambda ids: np.array(ids)), min_size=1, max_size=9
)


@settings(max_examples=40, deadline=None)
@given(
    encoded=SENTENCES,
    batch_size=st.integers(1, 10),
    order=st.randoms(use_true_random=False),
    search=st.sampled_from([{"method": "greedy"}, *({"method": method, "n_best": 2} for method in ("beam", "sample"))]),
    more=st.fixed_dictionaries(
        {
            "length_normalization": st.sampled_from(["none", "length", "gnmt"]),
            "no_repeat_ngram": st.sampled_from([None, 1, 2]),
            "mbr_utility": st.sampled_from(["none", "bleu", "chrf"]),
            "max_length_ratio": st.sampled_from([None, 0.5, 1.5]),
        }
    ),
)
def test_neither_batch_size_nor_order_matters(
    encoded: list[Ids], batch_size: int, order: Any, search: dict[str, Any], more: dict[str, Any]
) -> None:
    changes = {"beam_size": 3, "max_length": 12, "max_length_extra": 2, **search, **more}
    alone = run(trained("post"), encoded, batch_size=1, **changes)
    numbers = list(range(len(encoded)))
    order.shuffle(numbers)
    texts, asked = [encoded[number] for number in numbers], params(batch_size=batch_size, **changes)
    generator = TorchGenerator(trained("post"), vocabulary(30))
    shuffled = translate(generator, texts, vocabulary(30), asked, Observer(), numbers=numbers)
    for number, found in zip(numbers, shuffled, strict=True):
        assert [each.ids for each in found] == [each.ids for each in alone[number]]
        assert [each.score for each in found] == pytest.approx([each.score for each in alone[number]], abs=1e-9)


@METHOD
@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_no_run_of_tokens_occurs_twice(method: str, ngram: int) -> None:
    def found(blocked: int | None) -> list[list[int]]:
        search: dict[str, Any] = {"method": method, "n_best": 1 if method == "greedy" else 4, "temperature": 0.3}
        decoded = run(trained("post"), sources(), **search, no_repeat_ngram=blocked)
        return [each.ids for hypotheses in decoded for each in hypotheses]

    assert any(repeats(ids, ngram) for ids in found(None)), "nothing to block"
    assert not any(repeats(ids, ngram) for ids in found(ngram))


@METHOD
def test_lengths_are_kept(method: str) -> None:
    for found in run(trained("post"), sources(), method=method, max_length=3):
        assert len(found[0].ids) + found[0].finished <= 3
    limited = run(trained("post"), sources(), method=method, max_length_ratio=0.5, max_length_extra=1)
    limits = [max(1, -(-max(len(source) - 2, 0) // 2) + 1) for source in sources()]
    assert all(len(each[0].ids) + each[0].finished <= limit for each, limit in zip(limited, limits, strict=True))
    assert any(len(each[0].ids) == limit for each, limit in zip(limited, limits, strict=True))
