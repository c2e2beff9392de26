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


@settings(max_examples=40, deadline=None)
@given(st.lists(TOKENS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=4))
def test_utilities_are_sacrebleus(sequences: list[tuple[int, ...]], texts: list[str]) -> None:
    """BLEU with one added to every count."""
    plus_one: Any = {"tokenize": "none", "smooth_method": "add-k", "smooth_value": 1, "use_effective_order": True}
    written = [" ".join(f"w{token}" for token in each) for each in sequences]
    expected = [[sacrebleu.sentence_bleu(one, [other], **plus_one).score / 100 for other in written] for one in written]
    assert bleu(sequences) == pytest.approx(np.array(expected), abs=1e-9)
    expected = [[sacrebleu.sentence_chrf(one, [other]).score / 100 for other in texts] for one in texts]
    assert chrf(texts) == pytest.approx(np.array(expected), abs=1e-9)


def hypothesis(text: str, probability: float, *, finished: bool = True) -> Hypothesis:
    return Hypothesis([int(word) for word in text.split()], probability, float(np.log(probability)), finished)


ALONE = hypothesis("4 5 6 7 8", 0.4)
ALIKE = hypothesis("20 21 22 20 20", 0.3), hypothesis("20 21 22 20 21", 0.25)


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


def test_what_has_no_end_neither_counts_nor_leads() -> None:
    cut = [hypothesis("4 5 6 7", 0.9, finished=False), hypothesis("4 5 6 9", 0.9, finished=False)]
    settings = params(method="beam", mbr_utility="bleu", mbr_scale=1.0, n_best=4)
    assert chosen([*ALIKE, *cut], vocabulary(30), settings) == [*ALIKE, *cut]
    assert chosen(cut, vocabulary(30), settings) == cut, "where nothing has an end, all are candidates"


@pytest.mark.parametrize("own", [{"method": "sample", "n_best": 3}, {"method": "beam", "mbr_utility": "bleu"}])
def test_a_request_for_a_beam_of_one_is_greedy_search(own: dict[str, Any]) -> None:
    bundle = {"decoding": params(**own).model_dump()}
    found = DecodingParams(**FAMILY.requested(bundle, {"beam_size": 1})["decoding"])
    assert (found.method, found.n_best, found.reranks) == ("greedy", 1, False)
    assert FAMILY.requested(bundle, {"beam_size": 5})["decoding"]["method"] == "beam"
    assert FAMILY.requested(bundle, {})["decoding"] == bundle["decoding"]


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
