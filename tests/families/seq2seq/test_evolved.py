"""The cells of the Evolved Transformer: as many parameters as in the paper, and one result however a text is read."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.builders import LAYERS, seq2seq
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer, build_model
from transformer.nn.layers import count_parameters

SOURCE = torch.randint(5, 40, (2, 11), generator=torch.Generator().manual_seed(1))
TARGET = torch.randint(5, 30, (2, 13), generator=torch.Generator().manual_seed(2))


def evolved(**changes: Any) -> Seq2SeqTransformer:
    return seq2seq(layer="evolved", **changes)


def millions(layer: str, encoder: int, decoder: int) -> float:
    sizes = {"d_model": 512, "heads": 8, "d_ff": 2048, "positions": "sinusoidal", "tie_embeddings": "all"}
    depth = {"encoder_layers": encoder, "decoder_layers": decoder, "layer": layer, "norm": "pre"}
    model = Seq2SeqParams(**(LAYERS | sizes | depth))
    size = 33_060  # of one vocabulary, such that the Transformer has 61.1 million
    config = Seq2SeqConfig(model=model, source_size=size, target_size=size, source_pad_id=0, target_pad_id=0)
    with torch.device("meta"):
        return count_parameters(build_model(config)) / 1e6


def test_the_base_models_have_the_papers_number_of_parameters() -> None:
    """Table 2: 61.1 and 64.1 million, with three and four cells (the authors' `evolved_transformer_base`)."""
    assert millions("standard", 6, 6) == pytest.approx(61.1, abs=0.05)
    assert millions("evolved", 3, 4) == pytest.approx(64.1, abs=0.15)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_steps_equal_the_whole_target(norm: str) -> None:
    model, rows = evolved(norm=norm), torch.tensor([1, 1, 0])
    with torch.inference_mode():
        whole: Tensor = model(SOURCE, TARGET)
        cache = model.start(SOURCE)
        cache.select(rows)
        for place in range(TARGET.shape[1]):
            states = model.step(TARGET[rows, place], cache)
            torch.testing.assert_close(states, whole[rows, place])


def test_no_token_depends_on_padding_or_on_a_later_one() -> None:
    model, shorter = evolved(), SOURCE.clone()
    shorter[0, 6:] = 0
    with torch.inference_mode():
        together, alone = model(shorter, TARGET)[:1], model(SOURCE[:1, :6], TARGET[:1])
        torch.testing.assert_close(together, alone)
        torch.testing.assert_close(model(SOURCE, TARGET[:, :7]), model(SOURCE, TARGET)[:, :7])
