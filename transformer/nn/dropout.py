"""Dropout of values (Srivastava et al. 2014) and of whole tokens."""

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


class Dropout(nn.Module):
    """`dropout` in training mode, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, states: Tensor) -> Tensor:
        """Any shape."""
        return dropout(states, self.probability) if self.training else states

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.probability}"
