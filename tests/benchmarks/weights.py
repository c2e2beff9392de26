"""Copies our weights into the peers' models."""

import torch
from torch import Tensor, nn

from benchmarks.peers.nn_transformer import TorchTranslator
from benchmarks.peers.straightforward import renamed
from transformer.families.seq2seq.network import Seq2SeqTransformer


def load_into_straightforward(model: nn.Module, ours: nn.Module) -> None:
    state = {renamed(name): tensor for name, tensor in ours.state_dict().items()}
    table = {name for name in model.state_dict() if name.endswith("positions.weight")} - state.keys()  # sinusoidal
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys and set(result.missing_keys) == table


def load_into_nn_transformer(model: TorchTranslator, ours: Seq2SeqTransformer) -> None:
    state = ours.state_dict()
    for name in ("source_embedding", "target_embedding"):
        state[f"{name}.positions.weight"] = state.pop(f"{name}.positions.table.weight")
    model.load_state_dict(dict(_renamed(state)))


_NAMES = (
    ("attention_residual.norm", "norm1"),
    ("feed_forward.inner", "linear1"),
    ("feed_forward.outer", "linear2"),
    ("source_attention.output", "multihead_attn.out_proj"),
    ("attention.output", "self_attn.out_proj"),
)


def _renamed(state: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    renamed = []
    for name, tensor in state.items():
        stack = name.split(".")[0]
        if stack not in ("encoder", "decoder"):
            renamed.append((name, tensor))
        elif ".query." in name:
            parts = [state[name.replace(".query.", f".{part}.")] for part in ("query", "key", "value")]
            place, _, kind = name.partition(".query.")
            place = place.replace("source_attention", "multihead_attn")
            place = place if place.endswith("multihead_attn") else place.replace("attention", "self_attn")
            renamed.append((f"transformer.{place}.in_proj_{kind}", torch.cat(parts)))
        elif ".key." not in name and ".value." not in name:
            for ours, theirs in _NAMES:
                name = name.replace(ours, theirs)
            last = "norm2" if stack == "encoder" else "norm3"
            name = name.replace("source_residual.norm", "norm2").replace("feed_forward_residual.norm", last)
            renamed.append((f"transformer.{name}", tensor))
    return renamed
