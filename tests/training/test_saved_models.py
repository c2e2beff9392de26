"""Trained models are saved, and open as they were."""

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.builders import seq2seq
from transformer.core.errors import UserError
from transformer.families.seq2seq.interface import Seq2SeqConfig
from transformer.nn.trained import load_config, load_weights, save_trained, unique_state


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_tied_weights_are_saved_once_and_opened_as_tied(tied: str, tmp_path: Path) -> None:
    model = seq2seq(tie_embeddings=tied).float()
    state = unique_state(model)
    copies = sum(name in state for name in EMBEDDINGS)
    assert copies == {"none": 3, "target": 2, "all": 1}[tied]
    save_trained(tmp_path, model.config, {name: tensor.detach() for name, tensor in state.items()})
    assert load_config(tmp_path, Seq2SeqConfig) == model.config
    other = seq2seq(tie_embeddings=tied).float()
    for parameter in other.parameters():
        nn.init.constant_(parameter, 0.5)
    load_weights(tmp_path, other)
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    if tied != "none":
        assert other.output.weight is other.target_embedding.tokens.weight
        with pytest.raises(UserError, match="corrupt or belongs to another model"):
            load_weights(tmp_path, seq2seq(tie_embeddings="none", max_length=32).float())


EMBEDDINGS = ("source_embedding.tokens.weight", "target_embedding.tokens.weight", "output.weight")
