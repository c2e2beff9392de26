"""Translation models in ONNX and CTranslate2 compute what PyTorch does."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.builders import seq2seq
from tests.inference.converting import BUNDLES
from tests.inference.models import params, vocabulary
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary
from transformer.families.seq2seq.convert import forced
from transformer.families.seq2seq.decode import chosen, fit_sources, translate
from transformer.families.seq2seq.engines import CTranslate2Decoder, OnnxGenerator, answers_as_ours
from transformer.families.seq2seq.formats import onnx_graphs, write_ctranslate2, write_onnx
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.options import TranslationCommands
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.families.seq2seq.translator import Translator
from transformer.inference.search import Hypothesis

POSITIONS = 32
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "sinusoidal", "tie_embeddings": "all", "decoder_layers": 1},
    {"positions": "rotary", "head_dim": 6, "scale_embeddings": False, "tie_embeddings": "target", "encoder_layers": 1},
    {"norm": "pre", "positions": "none", "d_model": 15, "heads": 3, "head_dim": 4, "decoder_layers": 1},
]


class Converted(NamedTuple):
    """A random model whose answers vary in length, and what it is converted to."""

    model: Seq2SeqTransformer
    target: Vocabulary
    onnx: OnnxGenerator
    int8: OnnxGenerator
    ctranslate2: CTranslate2Decoder

    @property
    def torch(self) -> TorchGenerator:
        return TorchGenerator(self.model, self.target)

    def decoded(self, sources: list[Ids], **search: Any) -> list[list[Hypothesis]]:
        """The hypotheses of CTranslate2."""
        return self.ctranslate2(sources, params(**search), Observer(), None)


@pytest.fixture(scope="module", params=KINDS)
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return convert(tmp_path_factory.mktemp("converted"), request.param)


ONE = pytest.mark.parametrize("converted", KINDS[:1], indirect=True)


def convert(folder: Path, changes: dict[str, Any]) -> Converted:
    model = seq2seq(**changes).float()
    with torch.no_grad():
        model.output.bias.normal_(std=2)
        model.output.bias[[0, 2]] = 9.0  # padding and begin token would be the most probable
        model.output.bias[3] = 3.0
    source, target = vocabulary(model.config.source_size), vocabulary(model.config.target_size)
    graphs, vocabularies = onnx_graphs(model, target), {"source": source, "target": target}
    onnx = []
    for bits in (32, 8):
        write_onnx(folder / str(bits), graphs, vocabularies, int8=bits == 8)
        onnx.append(OnnxGenerator(folder / str(bits), positions=POSITIONS, source_pad_id=0, threads=1))
    write_ctranslate2(folder / "ctranslate2", model, source, target, int8=False)
    return Converted(
        model,
        target,
        onnx[0],
        onnx[1],
        CTranslate2Decoder(folder / "ctranslate2", source, target, positions=POSITIONS, threads=1),
    )


def pairs() -> tuple[list[Ids], list[Ids]]:
    generator = np.random.default_rng(0)
    sources = [generator.integers(4, 30, size=length) for length in (3, 9, 1, 5, POSITIONS, 2)]
    targets = [np.array([2, *generator.integers(4, 30, size=length), 3]) for length in (4, 0, 9, 1, 7, 2)]
    return sources, targets


SOURCES, TARGETS = pairs()
LONG = np.arange(4, 30).repeat(3)
"""Longer than the table of positions."""


def test_log_probabilities_are_those_of_one_forward_pass(converted: Converted) -> None:
    expected = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        with torch.inference_mode():
            states = converted.model(torch.from_numpy(source)[None], torch.from_numpy(target)[None, :-1])
            logits = converted.model.output(states)[0]
            logits[:, [0, 2]] = float("-inf")
        expected += logits.log_softmax(dim=-1)[range(len(target) - 1), target[1:]].tolist()
    for found in (
        forced(converted.torch, SOURCES, TARGETS),
        forced(converted.onnx, SOURCES, TARGETS),
        converted.ctranslate2.forced(SOURCES, TARGETS),
    ):
        assert np.concatenate(found) == pytest.approx(expected, abs=2e-5)
    rough = np.concatenate(forced(converted.int8, SOURCES, TARGETS))
    assert 1e-4 < np.abs(rough - expected).max() < 0.5


@pytest.mark.parametrize(
    "search",
    [
        {},
        {"method": "beam", "n_best": 3},
        {"method": "beam", "no_repeat_ngram": 2, "length_normalization": "gnmt"},
        {"method": "beam", "beam_size": 20, "max_length": 5},  # the 40 best of 30 entries
        {"method": "sample", "n_best": 2, "top_k": 9},
    ],
)
def test_our_search_over_onnx_finds_what_it_finds_over_pytorch(search: dict[str, Any], converted: Converted) -> None:
    target = converted.target
    expected = translate(converted.torch, SOURCES, target, params(**search), Observer())
    for size in (1, 2, 100):
        chosen = params(**search, batch_size=size)
        for own, theirs in zip(translate(converted.onnx, SOURCES, target, chosen, Observer()), expected, strict=True):
            assert [each.ids for each in own] == [each.ids for each in theirs]
            assert [each.score for each in own] == pytest.approx([each.score for each in theirs], abs=1e-4)
            assert not {0, 2} & {token for each in own for token in each.ids}


@pytest.mark.parametrize(
    "search", [{}, {"max_length_ratio": 1.0, "max_length_extra": 1, "long_sources": "split", "batch_size": 1}]
)
def test_ctranslate2_finds_our_greedy_translations(search: dict[str, Any], converted: Converted) -> None:
    sources, given = [*SOURCES, LONG], params(**search)
    assert answers_as_ours(given)
    expected = translate(converted.torch, sources, converted.target, given, Observer())
    for (own,), (theirs,) in zip(converted.decoded(sources, **search), expected, strict=True):
        assert (own.ids, own.finished) == (theirs.ids, theirs.finished)
        assert own.score == pytest.approx(theirs.score, abs=1e-4)
        assert own.log_probability == pytest.approx(theirs.log_probability, abs=1e-3)


@ONE
@pytest.mark.parametrize(
    "search",
    [
        {"method": "greedy", "no_repeat_ngram": 1},  # CTranslate2 redistributes the probability of blocked n-grams
        {"method": "beam", "no_repeat_ngram": 1, "n_best": 2},
        {"method": "beam", "beam_size": 6, "n_best": 6, "length_penalty": 0.0},
        {"method": "beam", "beam_size": 6, "n_best": 6, "length_penalty": 2.0},
        {"method": "beam", "beam_size": 12, "n_best": 12, "length_penalty": 3.0, "length_normalization": "gnmt"},
    ],
)
def test_scores_of_ctranslate2s_hypotheses_are_the_models_and_rank_them(
    search: dict[str, Any], converted: Converted
) -> None:
    given, lengths = params(**search), set[int]()
    for source, hypotheses in zip(SOURCES, converted.decoded(SOURCES, **search), strict=True):
        scores = [each.score for each in hypotheses]
        assert scores == pytest.approx(sorted(scores, reverse=True), abs=1e-5)
        for each in hypotheses:
            (tokens,) = forced(converted.torch, [source], [np.array([2, *each.ids, 3])])
            total = sum(tokens if each.finished else tokens[:-1])
            assert each.log_probability == pytest.approx(total, abs=1e-3)
            assert each.score == pytest.approx(given.normalized(total, len(each.ids) + each.finished), abs=1e-3)
            lengths.add(len(each.ids))
    assert len(lengths) > 1


@ONE
def test_an_option_that_ctranslate2_does_not_know_is_refused(converted: Converted) -> None:
    parser = ArgumentParser()
    TranslationCommands().add_options(parser, "translate")
    given = parser.parse_args(["--beam", "2", "--stopping", "exact"])
    vocabularies = {"source": converted.target, "target": converted.target}
    translator = Translator(converted.ctranslate2, vocabularies, BUNDLES / "translation-transformer", params())
    with pytest.raises(UserError, match="--stopping has no effect on CTranslate2's search"):
        TranslationCommands().answering(translator, given)


@ONE
@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_the_most_expected_utility_wins_in_ctranslate2s_beam(utility: str, converted: Converted) -> None:
    search: dict[str, Any] = {"method": "beam", "beam_size": 6, "long_sources": "split"}
    settings = params(**search, mbr_utility=utility)
    whole = converted.decoded(SOURCES, **search, n_best=6)
    expected = [chosen(found, converted.target, settings)[0].ids for found in whole]
    found = converted.decoded([*SOURCES, LONG], **search, mbr_utility=utility)
    assert [each[0].ids for each in found[:-1]] == expected
    assert expected != [each[0].ids for each in whole], "nothing was chosen anew"
    parts, _ = fit_sources([LONG], POSITIONS, "split", vocabulary(40))
    alone = converted.decoded(parts, **search, mbr_utility=utility)
    assert found[-1][0].ids == [token for (best,) in alone for token in best.ids]


@ONE
def test_ctranslate2_answers_no_more_than_there_are(converted: Converted) -> None:
    """A beam wider than the continuations is filled up with padding, or with what has no probability at all."""
    for hypotheses in converted.decoded(SOURCES[:2], method="beam", beam_size=40, n_best=40, max_length=1):
        assert 20 < len(hypotheses) <= 28, "of 30 entries, two are never generated"
        assert min(each.log_probability for each in hypotheses) > -100
