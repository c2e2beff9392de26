"""Our model with weights for the comparisons, and their copies in the peers' models."""

from torch import nn

from benchmarks.peers.nn_transformer import TorchTranslator
from benchmarks.peers.straightforward import renamed
from tests.builders import seq2seq
from tests.nn.test_reference import torch_layer
from transformer.families.seq2seq.network import Seq2SeqTransformer


def distinct() -> Seq2SeqTransformer:
    """A small model in float32, with weights large enough for distinct predictions."""
    model = seq2seq().float()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.3)
    return model


def load_into_straightforward(model: nn.Module, ours: nn.Module) -> None:
    state = {renamed(name): tensor for name, tensor in ours.state_dict().items()}
    table = {name for name in model.state_dict() if name.endswith("positions.weight")} - state.keys()  # sinusoidal
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys and set(result.missing_keys) == table


def load_into_nn_transformer(model: TorchTranslator, ours: Seq2SeqTransformer) -> None:
    state = {name.replace(".table", ""): tensor for name, tensor in ours.state_dict().items() if "coder." not in name}
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(ours, stack).layers):
            copied = torch_layer(layer, "post", "relu").state_dict()
            state |= {f"transformer.{stack}.layers.{number}.{name}": tensor for name, tensor in copied.items()}
    model.load_state_dict(state)
