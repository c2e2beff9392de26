"""The next token's distribution, and which tokens are allowed."""

import torch
from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary


def next_log_probabilities(logits: Tensor, target: Vocabulary) -> Tensor:
    """The log softmax of logits (R, V), excluding padding and begin token, which are never targets. Changes logits."""
    for never in (target.pad_id, target.begin_id):  # one by one: a list would be copied to the device at every step
        logits[:, never] = float("-inf")
    return logits.log_softmax(dim=-1)


def block_repeated(log_probabilities: Tensor, history: Tensor, ngram: int | None) -> None:
    """Set every token that would repeat an n-gram of length `ngram` to -inf, without rescaling the others.

    log_probabilities: (R, V), changed in place; history: (R, T), the target tokens so far, on the CPU or the same
    device. None blocks nothing.
    """
    if ngram is None or history.shape[1] < ngram:
        return
    runs = history.unfold(1, ngram, 1)  # (R, T - ngram + 1, ngram)
    tail = history[:, history.shape[1] - ngram + 1 :]  # (R, ngram - 1): the prefix that the next token would complete
    row, start = runs[:, :, :-1].eq(tail[:, None]).all(dim=-1).nonzero(as_tuple=True)
    blocked = (row.to(log_probabilities.device), runs[row, start, -1].to(log_probabilities.device))
    log_probabilities[blocked] = float("-inf")


def best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row of scores (R, W) and their indices, (R, min(count, W)) each, largest first.

    Ties are in the order of their indices, which `topk` does not guarantee.
    """
    width = scores.shape[1]
    values, indices = scores.topk(min(count + 1, width))
    if width > count:
        if values[:, count - 1].eq(values[:, count]).any():
            values, indices = scores.sort(dim=1, descending=True, stable=True)
        values, indices = values[:, :count], indices[:, :count]
    indices, order = indices.sort(dim=1)
    values, back = torch.sort(values.gather(1, order), dim=1, descending=True, stable=True)
    return values, indices.gather(1, back)
