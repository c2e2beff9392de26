"""Dropout of values (Srivastava et al. 2014) and of whole tokens."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from transformer.nn.kernels.dropout import dropout


def drop_tokens(token_ids: Tensor, pad_id: int, probability: float) -> Tensor:
    """Drop each token but the first of a row with `probability`: word dropout (Iyyer et al. 2015, section 3).

    token_ids: (B, T), padded at the end. Returns (B, T): the remaining tokens move up, followed by padding.
    """
    if probability == 0.0:
        return token_ids
    real = token_ids != pad_id
    stays = real & (torch.rand(token_ids.shape, device=token_ids.device) >= probability)
    stays[:, 0] = real[:, 0]  # the token that `first` pooling reads; it also keeps any text from becoming empty
    order = torch.argsort(stays.byte(), dim=1, descending=True, stable=True)
    return token_ids.gather(1, order).masked_fill(~stays.gather(1, order), pad_id)


@contextmanager
def token_cutoff(tables: Iterable[nn.Embedding], probability: float) -> Iterator[None]:
    """In the block, embed each token looked up in these tables as zeros with `probability`.

    Token cutoff (Shen et al. 2020): the token's place stays, with its position.
    """

    def cut(module: nn.Module, given: Any, looked_up: Tensor) -> Tensor:
        del module, given
        stays = torch.rand(looked_up.shape[:-1], device=looked_up.device) >= probability
        return looked_up * stays.unsqueeze(-1)

    hooks = [table.register_forward_hook(cut) for table in dict.fromkeys(tables)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class Dropout(nn.Module):
    """`dropout` in training mode, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, states: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        return dropout(states, self.probability) if self.training else states

    def extra_repr(self) -> str:
        """Return the text in `print(model)`."""
        return f"{self.probability}"
