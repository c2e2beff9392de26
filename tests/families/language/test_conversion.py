"""Converted language models: generation over ONNX Runtime that keeps what it has read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import language
from transformer.families.language.engines import OnnxContinuation, OnnxEngine, Sizes, UncachedGenerator
from transformer.families.language.formats import language_graph
from transformer.families.language.torch_model import TorchEngine
from transformer.inference.onnx_export import quantized, write_model

IDS = np.array([[2, 7, 9, 11, 5, 29], [2, 8, 6, 12, 3, 7]])
NEVER = (0, 4)


def engines(folder: Path, *, int8: bool = False, **changes: Any) -> tuple[TorchEngine, OnnxEngine]:
    model = language("causal", **changes).float()
    graph = language_graph(model)
    write_model(folder / "language_model.onnx", quantized(graph) if int8 else graph)
    sizes = Sizes(True, model.config.model.max_length, 0, 4, NEVER)
    return TorchEngine(model, NEVER), OnnxEngine(folder, sizes, threads=1)


@pytest.mark.parametrize(
    ("norm", "positions"), [("pre", "learned"), ("post", "sinusoidal"), ("pre", "rotary"), ("post", "none")]
)
def test_cached_steps_are_those_of_the_whole_text_and_of_pytorch(positions: str, norm: str, tmp_path: Path) -> None:
    """From nothing and from a beginning, with rows chosen, repeated and dropped in between."""
    torch_engine, onnx_engine = engines(tmp_path, positions=positions, norm=norm)
    assert isinstance(onnx_engine.generator, OnnxContinuation)
    cache = onnx_engine.generator.start(IDS[:, :4])
    onnx_engine.generator.log_probabilities(IDS[:, 4], cache, None)
    assert {value.shape()[2] for value in cache.past.values()} == {5}
    generators: list[Any] = [torch_engine.generator, onnx_engine.generator, UncachedGenerator(onnx_engine, NEVER)]
    for read in (0, 1, 3):
        caches: list[Any] = [generator.start(IDS[:, :read]) for generator in generators]
        last = IDS[:, read]
        for rows in (np.array([0, 1]), np.array([1, 1, 0]), np.array([2])):
            for cache in caches:
                cache.select(rows)
            last = last[rows] if len(rows) != 3 else np.array([5, 6, 7])
            expected, cached, uncached = (
                generator.log_probabilities(last, cache, None)
                for generator, cache in zip(generators, caches, strict=True)
            )
            assert np.isneginf(cached[:, NEVER]).all()
            np.testing.assert_allclose(cached, uncached, atol=1e-5)
            np.testing.assert_allclose(cached, expected, atol=1e-5)
            values, tokens = onnx_engine.generator.best(last, caches[1], 3, (np.array([0]), np.array([9])))
            others, same = torch_engine.generator.best(last, caches[0], 3, (np.array([0]), np.array([9])))
            generators[2].best(last, caches[2], 3, None)
            np.testing.assert_allclose(values, others, atol=1e-5)
            assert np.array_equal(tokens, same) and 9 not in tokens[0]


@pytest.mark.parametrize("int8", [False, True])
def test_whole_texts_are_scored_as_before(int8: bool, tmp_path: Path) -> None:
    torch_engine, engine = engines(tmp_path, int8=int8)
    ids = np.array([[2, 7, 9, 11, 5], [2, 8, 0, 0, 0]])
    places = np.array([0, 4, 5, 6])
    apart = np.abs(engine.log_probabilities(ids, places) - torch_engine.log_probabilities(ids, places)).max()
    assert apart < (0.2 if int8 else 1e-5)
    if not int8:
        states = engine.states(ids)[ids != 0]
        np.testing.assert_allclose(states, torch_engine.states(ids)[ids != 0], atol=1e-5)
