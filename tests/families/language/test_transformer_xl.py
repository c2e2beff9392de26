"""Transformer-XL equals XLNet's implementation, and the identities that define it hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.builders import transformer_xl
from tests.families.language.stock import xlnet
from transformer.families.language.transformer_xl import Memory
from transformer.nn.positions import sinusoidal_table
from transformer.nn.relative import relative_shift

IDS = torch.randint(5, 30, (2, 17), generator=torch.Generator().manual_seed(1))


def forward(ids: Tensor = IDS, **changes: Any) -> Tensor:
    with torch.inference_mode():
        found: Tensor = transformer_xl(**changes)(ids)
    return found


@pytest.mark.parametrize(
    "changes",
    [{}, {"same_length": True}, {"clamp_length": 3}, {"memory_length": 3}, {"memory_length": 40, "same_length": True}],
    ids=str,
)
def test_segments_and_their_memory_equal_xlnets(changes: dict[str, Any]) -> None:
    """With `same_length`, XLNet's tokens see no more than themselves until the memory is full."""
    ours = transformer_xl(**changes)
    theirs, mems = xlnet(ours), None
    memory: Memory | None = None
    if ours.encoder.same_length:
        memory = [torch.randn(2, ours.memory_length, 16, dtype=torch.float64) for _ in range(2)]
        mems = [each.transpose(0, 1) for each in memory]
    with torch.inference_mode():
        for segment in torch.split(IDS, 5, dim=1):
            states, memory = ours.segment(segment, memory)
            found = theirs(segment, mems=mems, use_mems=True)
            mems = found.mems
            torch.testing.assert_close(states, found.last_hidden_state)
            for own, their in zip(memory, mems or (), strict=True):
                torch.testing.assert_close(own, their.transpose(0, 1))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_equals_the_authors(norm: str) -> None:
    """The fixture is of `RelPartialLearnableDecoderLayer` in transformers 4.57.6, the last with Transformer-XL: random
    weights, states (3, 2, 8), memory (4, 2, 8), and what came out, in float64.
    """
    with np.load(Path(__file__).with_name("transfo_xl.npz")) as arrays:
        given = {name[len(norm) + 1 :]: torch.from_numpy(arrays[name]) for name in arrays if name.startswith(norm)}
    layer: Any = transformer_xl(d_model=8, heads=2, d_ff=12, norm=norm).encoder.layers[0]
    attention = layer.attention
    pairs = [
        *zip((attention.query, attention.key, attention.value), given["dec_attn.qkv_net.weight"].chunk(3), strict=True)
    ]
    order = [*range(0, 8, 2), *range(1, 8, 2)]  # the authors' sines are first
    with torch.no_grad():
        for part, weight in [*pairs, (attention.output, given["dec_attn.o_net.weight"])]:
            part.weight.copy_(weight)
            part.bias.zero_()
        attention.distance.weight[:, order] = given["dec_attn.r_net.weight"]
        attention.content_bias.copy_(given["dec_attn.r_w_bias"].flatten())
        attention.distance_bias.copy_(given["dec_attn.r_r_bias"].flatten())
        for part, name in (
            (layer.attention_residual.norm, "dec_attn.layer_norm"),
            (layer.feed_forward.inner, "pos_ff.CoreNet.0"),
            (layer.feed_forward.outer, "pos_ff.CoreNet.3"),
            (layer.feed_forward_residual.norm, "pos_ff.layer_norm"),
        ):
            part.weight.copy_(given[f"{name}.weight"])
            part.bias.copy_(given[f"{name}.bias"])
        distances = attention.distances(sinusoidal_table(7, 8).double().flip(0))
        states, memory = (given[name].transpose(0, 1) for name in ("states", "memory"))
        found = layer(states, None, distances, before=memory, causal=True)
    torch.testing.assert_close(found.transpose(0, 1), given["found"], rtol=1e-6, atol=1e-6)  # sinusoids in float32


def test_the_relative_shift_equals_its_definition() -> None:
    scores = torch.randn(2, 3, 4, 7)
    shifted = relative_shift(scores)
    for query in range(4):
        for key in range(3 + query + 1):
            distance = 3 + query - key
            assert torch.equal(shifted[..., query, key], scores[..., query, 6 - distance])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_segments_equal_one_pass_with_a_band(norm: str) -> None:
    """With `same_length` each token sees the 7 before it, wherever a segment begins."""
    torch.testing.assert_close(
        forward(same_length=True, norm=norm), forward(same_length=True, norm=norm, max_length=17)
    )


def test_without_a_memory_segments_are_texts_of_their_own() -> None:
    alone = torch.cat([forward(segment) for segment in torch.split(IDS, 5, dim=1)], dim=1)
    torch.testing.assert_close(forward(memory_length=0), alone)
    assert not torch.allclose(forward(), alone)


def test_nothing_depends_on_the_absolute_place() -> None:
    """Once the two layers of a repeated token see nothing else, their states are the same forever."""
    states = forward(torch.full((1, 40), 9), same_length=True)
    torch.testing.assert_close(states[:, 14:], states[:, 14:15].expand(-1, 26, -1))


def test_the_memory_has_no_gradient() -> None:
    model = transformer_xl()
    _, memory = model.segment(IDS[:, :5] * 0 + 7, None)
    states, _ = model.segment(IDS[:, 5:10] % 3 + 20, memory)
    states.sum().backward()  # type: ignore[no-untyped-call]
    gradient = model.embedding.tokens.weight.grad
    assert gradient is not None and not gradient[7].any() and gradient[20:23].any()
    assert not any(each.requires_grad for each in memory)


@pytest.mark.parametrize("changes", [{}, {"same_length": True}, {"memory_length": 0}, {"norm": "pre"}], ids=str)
@pytest.mark.parametrize("prompt", [0, 3, 5, 13])
def test_steps_equal_the_whole_text(prompt: int, changes: dict[str, Any]) -> None:
    model, whole, rows = transformer_xl(**changes), forward(**changes), torch.tensor([1, 0, 1])
    with torch.inference_mode():
        cache = model.start(IDS[:, :prompt])
        cache.select(rows)
        for place in range(prompt, IDS.shape[1]):
            states = model.step(IDS[rows, place], cache)
            torch.testing.assert_close(states, whole[rows, place])
