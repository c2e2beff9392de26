"""Sampling: from the model's own distribution, and from the requested part of it."""

import math

import numpy as np
import pytest
import torch

from tests.inference import reference
from tests.inference.models import params, run, tiny, trained, vocabulary
from transformer.inference.stepwise import draw_tokens

SOURCE = np.array([5, 7, 4])
DRAWS = 4000


def first_tokens(seed: int = 1, **changes: object) -> list[int]:
    """The first tokens of many samples for one sentence."""
    model = tiny(3, target_size=12, sharpness=1.5)
    drawn = run(model, [SOURCE], method="sample", n_best=DRAWS, max_length=1, seed=seed, **changes)
    return [each.ids[0] if each.ids else 3 for each in drawn[0]]


def probabilities(temperature: float = 1.0) -> np.ndarray:
    values = reference.next_log_probabilities(tiny(3, target_size=12, sharpness=1.5), SOURCE, [], vocabulary(12))
    return torch.tensor(values, dtype=torch.float64).div(temperature).softmax(dim=0).numpy()


def chi_square(tokens: list[int], expected: np.ndarray) -> tuple[float, int]:
    """Pearson's chi-square over tokens with an expected count of 5 or more, pooling the others; degrees of freedom."""
    counts, expected = np.bincount(tokens, minlength=12), expected * len(tokens)
    often = expected >= 5
    counts, expected = (np.append(values[often], values[~often].sum()) for values in (counts, expected))
    held = expected > 0
    return float((((counts - expected) ** 2)[held] / expected[held]).sum()), int(held.sum()) - 1


@pytest.mark.parametrize("temperature", [1.0, 2.5, 0.6])
def test_draws_follow_the_softmax(temperature: float) -> None:
    tokens = first_tokens(temperature=temperature)
    statistic, freedom = chi_square(tokens, probabilities(temperature))
    # The mean of chi-square is its degrees of freedom, its variance twice that: five sigma happen once in a million.
    assert freedom >= 4
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)
    other, _ = chi_square(tokens, probabilities(temperature * 1.5))
    assert other > freedom + 5 * math.sqrt(2 * freedom), "the test could not detect another temperature"
    assert first_tokens(temperature=temperature) == tokens != first_tokens(seed=2, temperature=temperature)


def test_a_cut_and_the_ends_of_the_unit_interval() -> None:
    chances = np.log(np.array([[0.4, 0.3, 0.2, 0.1]] * 100))
    drawn = draw_tokens(chances, np.linspace(0, 1, 101)[:100], params(method="sample", top_k=2, top_p=0.5))
    assert set(drawn.tolist()) == {0}, "top-p counts what top-k left: 0.4 / 0.7 alone is more than half"
    impossible = np.array([[-math.inf, math.log(0.25), math.log(0.75), -math.inf]] * 2)
    assert draw_tokens(impossible, np.array([0.0, 1 - 2**-53]), params()).tolist() == [1, 2]


def test_samples_are_scored_by_the_model_itself() -> None:
    found = run(trained("pre"), [SOURCE], method="sample", n_best=20, temperature=2.0, top_k=9)[0]
    assert len({tuple(each.ids) for each in found}) > 5
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    for each in found:
        ids = [*each.ids, 3] if each.finished else each.ids
        expected = reference.log_probability(trained("pre"), SOURCE, ids, vocabulary(30))
        assert each.log_probability == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("top_k", [None, 700])
def test_top_p_of_a_large_vocabulary_is_that_of_the_sorted_one(top_k: int | None) -> None:
    """A peaked row and a flat one, whose share takes a few entries and most of them, with equal ones among them."""
    generator = np.random.default_rng(0)
    peaked, flat = (generator.normal(scale=scale, size=3000).round(2) for scale in (6.0, 0.1))
    scores = np.stack((peaked, flat))
    for share in (0.5, 0.9, 1.0):
        cut = params(method="sample", top_k=top_k, top_p=share)
        for row in (0, 1):
            order = np.argsort(-scores[row], kind="stable")[:top_k]
            chances = np.exp(scores[row][order] - scores[row].max())
            chances /= chances.sum()
            fewest = int(np.searchsorted(chances.cumsum(), share)) + 1
            uniform = (np.arange(200) + 0.5) / 200
            by_index = order[:fewest].argsort()
            mass = chances[:fewest][by_index].cumsum()
            expected = order[:fewest][by_index][np.searchsorted(mass / mass[-1], uniform)]
            both = draw_tokens(np.repeat(scores, 200, axis=0), np.tile(uniform, 2), cut).reshape(2, 200)
            assert both[row].tolist() == expected.tolist()
