"""Minimum Bayes risk: utilities as sacreBLEU computes them, and the choice as its definition says."""

from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inference.models import params, run, sources, trained, vocabulary
from transformer.families.seq2seq import FAMILY
from transformer.families.seq2seq.decode import DecodingParams, bleu, chosen, chrf
from transformer.inference.search import Hypothesis

TOKENS = st.lists(st.integers(4, 9), max_size=9).map(tuple)
TEXTS = st.text(alphabet="ab ñж日 \u0301", max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(TOKENS, min_size=1, max_size=5))
def test_bleu_is_sacrebleus_with_one_added(sequences: list[tuple[int, ...]]) -> None:
    plus_one: Any = {"tokenize": "none", "smooth_method": "add-k", "smooth_value": 1, "use_effective_order": True}
    found = bleu(sequences)
    texts = [" ".join(f"w{token}" for token in each) for each in sequences]
    for row, hypothesis in enumerate(texts):
        for column, reference in enumerate(texts):
            expected = sacrebleu.sentence_bleu(hypothesis, [reference], **plus_one).score / 100
            assert found[row, column] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_chrf_is_sacrebleus(texts: list[str]) -> None:
    found = chrf(texts)
    for row, hypothesis in enumerate(texts):
        for column, reference in enumerate(texts):
            expected = sacrebleu.sentence_chrf(hypothesis, [reference]).score / 100
            assert found[row, column] == pytest.approx(expected, abs=1e-9)


def hypothesis(text: str, probability: float, *, finished: bool = True) -> Hypothesis:
    return Hypothesis([int(word) for word in text.split()], probability, float(np.log(probability)), finished)


ALONE = hypothesis("4 5 6 7 8", 0.4)
ALIKE = hypothesis("20 21 22 20 20", 0.3), hypothesis("20 21 22 20 21", 0.25)


def test_two_that_agree_win_against_one_that_is_more_probable() -> None:
    beam = [ALONE, *ALIKE]
    for utility in ("bleu", "chrf"):
        settings = params(method="beam", mbr_utility=utility, mbr_scale=1.0, n_best=3)
        assert chosen(beam, vocabulary(30), settings) == [*ALIKE, ALONE]


def test_the_scale_weighs_probabilities() -> None:
    def best(scale: float) -> Hypothesis:
        settings = params(method="beam", mbr_utility="bleu", mbr_scale=scale)
        return chosen([ALONE, *ALIKE], vocabulary(30), settings)[0]

    assert best(8.0) == ALONE, "then the most probable one has nearly all the weight"
    assert best(0.5) == ALIKE[0]
    assert best(0.0) == ALIKE[0], "of two that are alike, the one with the better score"


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.3])
@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_the_expectation_is_over_all_of_them(utility: str, scale: float) -> None:
    generator, target = np.random.default_rng(3), vocabulary(30)

    def ranked(beam: list[Hypothesis], utilities: Any) -> list[Hypothesis]:
        weights = [float(np.exp(scale * each.log_probability)) for each in beam]
        expected = [sum(w * u for w, u in zip(weights, row, strict=True)) for row in utilities]
        return [beam[place] for place in sorted(range(len(beam)), key=lambda place: -expected[place])]

    others = {"bleu": 0, "chrf": 0, "transposed": 0}
    for _ in range(20):
        beam = [
            hypothesis(" ".join(map(str, generator.integers(4, 24, size=length))), probability)
            for length, probability in zip((3, 7, 4, 5), (0.4, 0.2, 0.1, 0.01), strict=True)
        ]
        utilities = {
            "bleu": bleu([tuple(each.ids) for each in beam]),
            "chrf": chrf([target.decode(each.ids) for each in beam]),
        }
        settings = params(method="beam", mbr_utility=utility, mbr_scale=scale, n_best=4)
        found = chosen(beam, target, settings)
        assert found == ranked(beam, utilities[utility])
        for name, wrong in {**utilities, "transposed": utilities[utility].T}.items():
            others[name] += found != ranked(beam, wrong)
    assert others.pop(utility) == 0
    assert all(others.values()), "the wrong utilities would have ranked them in the same way"


def test_nothing_agrees_with_itself() -> None:
    beam = [hypothesis("", 0.98), hypothesis("5", 0.01)]
    for utility in ("bleu", "chrf"):
        assert chosen(beam, vocabulary(30), params(method="beam", mbr_utility=utility)) == beam[:1]


def test_equals_stay_in_the_order_of_their_scores() -> None:
    for size in range(3, 14):  # each has a word of the one before it, the first of the last: all are equal
        ring = [[4 + place, 20, 21, 4 + (place + 1) % size] for place in range(size)]
        beam = [hypothesis(" ".join(map(str, each)), 0.9**place) for place, each in enumerate(ring)]
        settings = params(method="beam", beam_size=size, mbr_utility="bleu", mbr_scale=0.0, n_best=size)
        assert chosen(beam, vocabulary(30), settings) == beam


def test_what_has_no_end_neither_counts_nor_leads() -> None:
    cut = [hypothesis("4 5 6 7", 0.9, finished=False), hypothesis("4 5 6 9", 0.9, finished=False)]
    settings = params(method="beam", mbr_utility="bleu", mbr_scale=1.0, n_best=4)
    assert chosen([*ALIKE, *cut], vocabulary(30), settings) == [*ALIKE, *cut]
    assert chosen(cut, vocabulary(30), settings) == cut, "where nothing has an end, all are candidates"


@pytest.mark.parametrize(
    "changes", [{}, {"mbr_utility": "chrf", "method": "greedy"}, {"mbr_utility": "bleu", "beam_size": 1}]
)
def test_otherwise_the_order_stays(changes: dict[str, Any]) -> None:
    settings = params(**({"method": "beam"} | changes))
    assert chosen([ALONE, *ALIKE], vocabulary(30), settings) == [ALONE]


@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_the_candidates_are_the_whole_beam(utility: str) -> None:
    beam = {"method": "beam", "beam_size": 6, "length_normalization": "none"}
    everything = run(trained("post"), sources(), n_best=6, **beam)
    settings = params(n_best=2, mbr_utility=utility, mbr_scale=0.3, **beam)
    expected = [chosen(found, vocabulary(30), settings) for found in everything]
    found = run(trained("post"), sources(), n_best=2, mbr_utility=utility, mbr_scale=0.3, **beam)
    assert {len(hypotheses) for hypotheses in found} == {2}
    assert [[each.ids for each in hypotheses] for hypotheses in found] == [
        [each.ids for each in hypotheses] for hypotheses in expected
    ]
    assert [found[0].ids for found in expected] != [found[0].ids for found in everything], "nothing was chosen anew"


@pytest.mark.parametrize(
    ("request_params", "reranks", "candidates"),
    [({}, True, 20), ({"beam_size": 5}, True, 5), ({"n_best": 2}, True, 20), ({"beam_size": 1}, False, 1)],
)
def test_a_request_changes_how_many_are_chosen_from(
    request_params: dict[str, int], reranks: bool, candidates: int
) -> None:
    bundle = {"decoding": params(method="beam", beam_size=20, mbr_utility="bleu").model_dump()}
    settings = DecodingParams(**FAMILY.requested(bundle, request_params)["decoding"])
    assert (settings.reranks, settings.candidates) == (reranks, candidates)


@pytest.mark.parametrize(
    "own", [{"method": "sample"}, {"method": "sample", "n_best": 3}, {"method": "beam", "n_best": 3}]
)
def test_a_request_for_a_beam_of_one_is_greedy_search(own: dict[str, Any]) -> None:
    bundle = {"decoding": params(**own).model_dump()}
    found = FAMILY.requested(bundle, {"beam_size": 1})["decoding"]
    assert (found["method"], found["n_best"]) == ("greedy", 1)
    assert FAMILY.requested(bundle, {"beam_size": 5})["decoding"]["method"] == "beam"
    assert FAMILY.requested(bundle, {})["decoding"] == bundle["decoding"]
