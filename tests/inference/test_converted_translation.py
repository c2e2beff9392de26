"""Translation models in ONNX and CTranslate2 compute what PyTorch does."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import seq2seq
from tests.conftest import ROOT
from tests.inference.converting import BUNDLES
from tests.inference.models import params, vocabulary
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.families.seq2seq import decode as minimum_risk
from transformer.families.seq2seq.convert import forced
from transformer.families.seq2seq.decode import fit_sources, translate
from transformer.families.seq2seq.engines import CTranslate2Decoder, OnnxGenerator, answers_as_ours
from transformer.families.seq2seq.formats import decoder_graph, encoder_graph, write_ctranslate2
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.options import TranslationCommands
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.families.seq2seq.translator import Translator
from transformer.inference.onnx_layers import quantized, write_model

POSITIONS = 32
FEW: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "sinusoidal", "tie_embeddings": "all"},
    {"positions": "rotary", "head_dim": 6, "scale_embeddings": False, "tie_embeddings": "target"},
    {"norm": "pre", "positions": "none", "d_model": 15, "heads": 3, "head_dim": 4, "decoder_layers": 1},
]
MANY = [
    {"norm": norm, "activation": activation, "positions": positions, "tie_embeddings": tied, "head_dim": head_dim}
    for norm in ("post", "pre")
    for activation in ("relu", "gelu")
    for positions in ("learned", "sinusoidal", "rotary", "none")
    for tied in ("none", "target", "all")
    for head_dim in (None, 6)
]
CHANGES = pytest.mark.parametrize("changes", [*FEW, *(pytest.param(each, marks=pytest.mark.stress) for each in MANY)])


def model_of(changes: dict[str, Any]) -> Seq2SeqTransformer:
    """A random model whose answers vary in length; padding and begin token would be the most probable."""
    model = seq2seq(**changes).float()
    with torch.no_grad():
        model.output.bias.normal_(std=2)
        model.output.bias[[0, 2]] = 9.0
        model.output.bias[3] = 1.0
    return model


def pairs() -> tuple[list[Ids], list[Ids]]:
    generator = np.random.default_rng(0)
    sources = [generator.integers(4, 30, size=length) for length in (3, 9, 1, 5, POSITIONS, 2)]
    targets = [np.array([2, *generator.integers(4, 30, size=length), 3]) for length in (4, 0, 9, 1, 7, 2)]
    return sources, targets


def to_onnx(folder: Path, model: Seq2SeqTransformer, *, int8: bool = False) -> OnnxGenerator:
    for name, graph in (("encoder", encoder_graph(model)), ("decoder", decoder_graph(model, target_of(model)))):
        write_model(folder / f"{name}.onnx", quantized(graph) if int8 else graph)
    return OnnxGenerator(folder, positions=POSITIONS, source_pad_id=0, threads=1)


def to_ctranslate2(folder: Path, model: Seq2SeqTransformer) -> CTranslate2Decoder:
    source = vocabulary(model.config.source_size)
    write_ctranslate2(folder, model, source, target_of(model), int8=False)
    return CTranslate2Decoder(folder, source, target_of(model), positions=POSITIONS, threads=1)


def target_of(model: Seq2SeqTransformer) -> Any:
    return vocabulary(model.config.target_size)


def close(found: list[list[float]], expected: list[list[float]]) -> bool:
    return all(one == pytest.approx(two, abs=2e-5) for one, two in zip(found, expected, strict=True))


@CHANGES
def test_log_probabilities_are_those_of_one_forward_pass(changes: dict[str, Any], tmp_path: Path) -> None:
    model = model_of(changes)
    sources, targets = pairs()
    expected = []
    for source, target in zip(sources, targets, strict=True):
        with torch.inference_mode():
            states = model(torch.from_numpy(source)[None], torch.from_numpy(target)[None, :-1])
            logits = model.output(states)[0]
            logits[:, [0, 2]] = float("-inf")
        expected.append(logits.log_softmax(dim=-1)[range(len(target) - 1), target[1:]].tolist())
    assert close(forced(TorchGenerator(model, target_of(model)), sources, targets), expected)
    assert close(forced(to_onnx(tmp_path / "onnx", model), sources, targets), expected)
    assert close(to_ctranslate2(tmp_path / "ctranslate2", model).forced(sources, targets), expected)


@CHANGES
@pytest.mark.parametrize(
    "search",
    [
        {},
        {"method": "beam", "n_best": 3},
        {"method": "beam", "no_repeat_ngram": 2, "length_normalization": "gnmt"},
        {"method": "beam", "mbr_utility": "chrf", "n_best": 2},
        {"method": "sample", "n_best": 2, "top_k": 9},
    ],
)
def test_our_search_over_onnx_finds_what_it_finds_over_pytorch(
    search: dict[str, Any], changes: dict[str, Any], tmp_path: Path
) -> None:
    model, (sources, _) = model_of(changes), pairs()
    target = target_of(model)
    found = translate(to_onnx(tmp_path, model), sources, target, params(**search), Observer())
    expected = translate(TorchGenerator(model, target), sources, target, params(**search), Observer())
    for own, theirs in zip(found, expected, strict=True):
        assert [each.ids for each in own] == [each.ids for each in theirs]
        assert [each.score for each in own] == pytest.approx([each.score for each in theirs], abs=1e-4)
        assert not {0, 2} & {token for each in own for token in each.ids}


@CHANGES
@pytest.mark.parametrize(
    "search", [{}, {"max_length_ratio": 1.0, "max_length_extra": 1, "long_sources": "split", "batch_size": 1}]
)
def test_ctranslate2_finds_our_greedy_translations(
    search: dict[str, Any], changes: dict[str, Any], tmp_path: Path
) -> None:
    model, (sources, _) = model_of(changes), pairs()
    sources.append(np.arange(4, 30).repeat(3))  # longer than the table of positions
    target, chosen = target_of(model), params(**search)
    assert answers_as_ours(chosen)
    found = to_ctranslate2(tmp_path / "model", model)(sources, chosen, Observer(), None)
    expected = translate(TorchGenerator(model, target), sources, target, chosen, Observer())
    for (own,), (theirs,) in zip(found, expected, strict=True):
        assert (own.ids, own.finished) == (theirs.ids, theirs.finished)
        assert own.score == pytest.approx(theirs.score, abs=1e-4)
        assert own.log_probability == pytest.approx(theirs.log_probability, abs=1e-3)


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_scores_beside_blocked_ngrams_are_the_models(method: str, tmp_path: Path) -> None:
    """CTranslate2 shares out the probability of the n-grams that it blocks."""
    model, (sources, _) = model_of({}), pairs()
    chosen = params(method=method, no_repeat_ngram=1, n_best=2 if method == "beam" else 1)
    found = to_ctranslate2(tmp_path / "model", model)(sources, chosen, Observer(), None)
    generator, compared = TorchGenerator(model, target_of(model)), 0
    for source, hypotheses in zip(sources, found, strict=True):
        for each in hypotheses:
            (tokens,) = forced(generator, [source], [np.array([2, *each.ids, 3])])
            total = sum(tokens if each.finished else tokens[:-1])
            assert each.log_probability == pytest.approx(total, abs=1e-3)
            assert each.score == pytest.approx(chosen.normalized(total, len(each.ids) + each.finished), abs=1e-3)
            compared += 1
        assert [each.score for each in hypotheses] == sorted((each.score for each in hypotheses), reverse=True)
    assert compared >= len(sources)


def test_an_option_that_ctranslate2_does_not_know_is_refused(tmp_path: Path) -> None:
    parser = ArgumentParser()
    TranslationCommands().add_options(parser, "translate")
    given = parser.parse_args(["--beam", "2", "--stopping", "exact"])
    decoder = to_ctranslate2(tmp_path / "model", model_of({}))
    target = vocabulary(30)
    translator = Translator(
        decoder, {"source": target, "target": target}, BUNDLES / "translation-transformer", params()
    )
    with pytest.raises(UserError, match="--stopping has no effect on CTranslate2's search"):
        TranslationCommands().answering(translator, given)


@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_of_ctranslate2s_beam_the_one_with_the_most_expected_utility_answers(utility: str, tmp_path: Path) -> None:
    model, (sources, _) = model_of({}), pairs()
    sources.append(np.arange(4, 30).repeat(3))  # longer than the table of positions
    search = {"method": "beam", "beam_size": 6, "long_sources": "split"}
    translator, settings = to_ctranslate2(tmp_path / "model", model), params(**search, mbr_utility=utility)
    whole = translator(sources[:-1], params(**search, n_best=6), Observer(), None)
    expected = [minimum_risk.chosen(found, target_of(model), settings)[0].ids for found in whole]
    found = translator(sources, settings, Observer(), None)
    assert [each[0].ids for each in found[:-1]] == expected
    assert expected != [each[0].ids for each in whole], "nothing was chosen anew"
    parts, _ = fit_sources(sources[-1:], POSITIONS, "split", vocabulary(model.config.source_size))
    alone = translator(parts, settings, Observer(), None)
    assert found[-1][0].ids == [token for (best,) in alone for token in best.ids]


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_log_probabilities_of_ctranslate2s_beam_are_those_of_its_tokens(penalty: float, tmp_path: Path) -> None:
    """It gives scores alone, divided by a power of the length with the end token, as ours are."""
    model, (sources, _) = model_of({}), pairs()
    chosen, target = (
        params(method="beam", beam_size=6, n_best=6, length_penalty=penalty, max_length=6),
        target_of(model),
    )
    model.output.bias.data[target.end_id] += 2  # so that some hypotheses are finished
    translator = to_ctranslate2(tmp_path / "model", model)
    lengths, unfinished = set[int](), 0
    for source, hypotheses in zip(sources, translator(sources, chosen, Observer(), None), strict=True):
        scores = [each.score for each in hypotheses]
        assert scores == pytest.approx(sorted(scores, reverse=True), abs=1e-5)
        for each in hypotheses:
            (forced,) = translator.forced([source], [np.array([target.begin_id, *each.ids, target.end_id])])
            assert each.log_probability == pytest.approx(sum(forced[: len(each.ids) + each.finished]), abs=1e-3)
            lengths.add(len(each.ids))
            unfinished += not each.finished
    assert len(lengths) > 2 and unfinished, "nothing was put to the test"


def test_ctranslate2s_beam_is_in_the_order_of_gnmts_score(tmp_path: Path) -> None:
    """CTranslate2 has no such score, and ranks without one."""
    model, (sources, _) = model_of({}), pairs()
    search = {"method": "beam", "beam_size": 12, "n_best": 12, "length_penalty": 3.0}
    found = to_ctranslate2(tmp_path / "model", model)(
        sources, params(**search, length_normalization="gnmt"), Observer(), None
    )
    for hypotheses in found:
        scores = [each.score for each in hypotheses]
        assert scores == sorted(scores, reverse=True)
    plain = to_ctranslate2(tmp_path / "again", model)(
        sources, params(**search, length_normalization="none"), Observer(), None
    )
    orders = ([[each.ids for each in hypotheses] for hypotheses in all_of_them] for all_of_them in (found, plain))
    assert next(orders) != next(orders), "nothing was ranked anew"


def test_ctranslate2_answers_no_more_than_there_are(tmp_path: Path) -> None:
    """A beam wider than the continuations is filled up with padding, or with what has no probability at all."""
    model, (sources, _) = model_of({}), pairs()
    wide = params(method="beam", beam_size=40, n_best=40, max_length=1)  # of 30 entries, two are never written
    for hypotheses in to_ctranslate2(tmp_path / "model", model)(sources[:2], wide, Observer(), None):
        assert 20 < len(hypotheses) <= 28
        assert min(each.log_probability for each in hypotheses) > -100


def test_one_sentence_alone_and_a_batch_of_many_lengths_are_the_same(tmp_path: Path) -> None:
    generator, (sources, _) = to_onnx(tmp_path, model_of({})), pairs()
    for size in (1, 2, 6):
        chosen = params(method="beam", batch_size=size)
        found = translate(generator, sources, vocabulary(30), chosen, Observer())
        assert [each[0].ids for each in found] == [
            translate(generator, [source], vocabulary(30), chosen, Observer())[0][0].ids for source in sources
        ]


def test_beams_beyond_the_vocabulary(tmp_path: Path) -> None:
    model, (sources, _) = model_of({}), pairs()
    chosen = params(method="beam", beam_size=20)  # 40 best of 30 entries
    found = translate(to_onnx(tmp_path, model), sources, vocabulary(30), chosen, Observer())
    expected = translate(TorchGenerator(model, vocabulary(30)), sources, vocabulary(30), chosen, Observer())
    assert [each[0].ids for each in found] == [each[0].ids for each in expected]


def test_graphs_have_the_same_bytes_each_time_and_no_path(tmp_path: Path) -> None:
    one, two = (encoder_graph(model_of({})).SerializeToString(deterministic=True) for _ in range(2))
    assert one == two
    files = []
    for name in ("a", "b"):
        for int8 in (False, True):
            to_onnx(tmp_path / f"{name}{int8}", model_of({}), int8=int8)
        to_ctranslate2(tmp_path / f"{name}-ctranslate2", model_of({}))
        files.append([path.read_bytes() for path in sorted(tmp_path.glob(f"{name}*/*"))])
    assert files[0] == files[1]
    assert not any(
        word in content
        for content in files[0]
        for word in (str(ROOT).encode(), str(tmp_path).encode(), b"site-packages")
    )


def test_eight_bits_are_near(tmp_path: Path) -> None:
    model, (sources, targets) = model_of({}), pairs()
    exact = np.concatenate(forced(to_onnx(tmp_path / "float", model), sources, targets))
    rough = np.concatenate(forced(to_onnx(tmp_path / "int8", model, int8=True), sources, targets))
    assert 1e-4 < np.abs(exact - rough).max() < 0.5
    sizes = [sum(path.stat().st_size for path in (tmp_path / kind).iterdir()) for kind in ("float", "int8")]
    assert sizes[1] < sizes[0]
