"""Beam search, compared with exhaustive search, with its definition, and with itself in other batches."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.inference import reference
from tests.inference.models import params, run, sources, tiny, trained, vocabulary
from transformer.data.store import Ids, padded
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.inference.beam import beam_search
from transformer.inference.search import Sources
from transformer.inference.stepwise import best
from transformer.inference.torch_steps import best as torch_best

STOPPING = ["exact", "heuristic", "first"]
NORMALIZATIONS = [("none", 0.0), ("length", 1.0), ("length", 1.8), ("gnmt", 0.6), ("gnmt", 3.0)]


def few_sources(seed: int) -> list[Ids]:
    generator = np.random.default_rng(seed)
    return [generator.integers(4, 12, size=length) for length in (2, 6, 4)]


@pytest.mark.parametrize(("kind", "alpha"), NORMALIZATIONS)
def test_a_wide_beam_finds_the_best_of_all_sequences(kind: str, alpha: float) -> None:
    target, lengths = vocabulary(6), set()
    for seed in range(4):
        model, encoded = tiny(seed, sharpness=8.0), few_sources(seed)
        settings = {"method": "beam", "max_length": 4, "length_normalization": kind, "length_penalty": alpha}
        wide = run(model, encoded, beam_size=100, n_best=5, **settings)
        for source, found in zip(encoded, wide, strict=True):
            all_of_them = reference.everything(model, source, target, 4)
            assert len(all_of_them) == 1 + 3 + 9 + 27
            ranked = sorted(((reference.score(p, len(ids), kind, alpha), ids) for p, ids in all_of_them), reverse=True)
            assert [[*each.ids, 3] for each in found] == [ids for _, ids in ranked[:5]]
            assert [each.score for each in found] == pytest.approx([value for value, _ in ranked[:5]], abs=1e-10)
            lengths.add(len(found[0].ids))
        for beam_size in (1, 2, 3):
            for narrow, found in zip(run(model, encoded, beam_size=beam_size, **settings), wide, strict=True):
                assert not narrow[0].finished or narrow[0].score <= found[0].score + 1e-10
    assert len(lengths) > 1, "all best sequences are equally long: the normalization would not show"


@pytest.mark.parametrize("stopping", STOPPING)
def test_thirty_random_models_against_the_definition(stopping: str) -> None:
    generator, unfinished, stopped_early = np.random.default_rng(5), 0, 0
    for seed in range(30):
        kind, alpha = NORMALIZATIONS[seed % len(NORMALIZATIONS)]
        beam_size = int(generator.integers(1, 6))
        settings = params(
            method="beam",
            beam_size=beam_size,
            n_best=int(generator.integers(1, beam_size + 1)),
            stopping=stopping,
            length_normalization=kind,
            length_penalty=alpha,
            max_length=int(generator.integers(1, 9)),
            no_repeat_ngram=[None, None, 1, 2][int(generator.integers(4))],
        )
        model, encoded = tiny(seed, target_size=9, sharpness=6.0), few_sources(seed)
        batch = Sources(
            padded(encoded, 0),
            first=np.full(len(encoded), 2),
            limits=[settings.max_length] * len(encoded),
            seeds=[(0,), (1,), (2,)],
        )
        decoded = beam_search(TorchGenerator(model, vocabulary(9)), batch, vocabulary(9), settings)
        for source, found in zip(encoded, decoded, strict=True):
            assert [each.ids for each in found] == reference.beam(model, source, vocabulary(9), settings), settings
            unfinished += sum(not each.finished for each in found)
            stopped_early += all(len(each.ids) < settings.max_length - 1 for each in found)
    assert unfinished > 5
    assert stopped_early > 5


def test_more_hypotheses_than_are_ranked_at_a_time() -> None:
    settings: dict[str, Any] = {"method": "beam", "beam_size": 5, "no_repeat_ngram": 2}
    assert 5 * len(sources()) < 128 < 5 * 5 * len(sources())
    once, five = (run(trained("post"), sources() * times, **settings) for times in (1, 5))
    assert [found[0].ids for found in five] == [found[0].ids for found in once] * 5


@pytest.mark.parametrize("digits", [1, 9])
def test_a_few_of_many_are_those_of_all_in_order(digits: int) -> None:
    """With equal scores among them, for the last place too, and with blocked tokens."""
    scores = np.random.default_rng(digits).normal(size=(50, 400)).round(digits)
    scores[:, ::7] = -np.inf
    for count in (1, 2, 10, 99, 100, 400):
        values, indices = best(scores, count)
        assert torch_best(torch.from_numpy(scores), count)[1].tolist() == indices.tolist()
        for row in range(50):
            expected = sorted(range(400), key=lambda index: (-scores[row, index], index))[:count]
            assert indices[row].tolist() == expected
            assert values[row].tolist() == scores[row, expected].tolist()
