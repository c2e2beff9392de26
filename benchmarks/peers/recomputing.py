"""Decoding as in the public notebooks: every step runs the whole prefix through the decoder again."""

import torch
from torch import Tensor

from benchmarks.peers.straightforward import StraightforwardTranslator
from transformer.encoded.vocabulary import Vocabulary


@torch.no_grad()
def greedy(model: StraightforwardTranslator, source: Tensor, target: Vocabulary, limit: int) -> list[list[int]]:
    """The output ids for each row of source (B, S), at most `limit`, without begin and end tokens."""
    encoded, mask = model.encode(source)
    found = torch.full_like(source[:, :1], target.begin_id)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    while found.shape[1] <= limit and not ended.all():
        logits = _allowed(model.decode(found, encoded, mask)[:, -1], target)
        following = logits.argmax(dim=-1).masked_fill(ended, target.pad_id)
        ended |= following == target.end_id
        found = torch.cat((found, following[:, None]), dim=1)
    return [_text(row, target) for row in found[:, 1:].tolist()]


@torch.no_grad()
def beam(model: StraightforwardTranslator, source: Tensor, target: Vocabulary, limit: int, size: int) -> list[int]:
    """The best of `size` hypotheses for one sentence (1, S) by mean log probability per token, including the end token.

    Stops when no unfinished hypothesis can beat the best finished one.
    """
    encoded, mask = model.encode(source)
    running, totals = torch.full_like(source[:, :1], target.begin_id), torch.zeros(1, dtype=torch.float64)
    best, best_score = list[int](), float("-inf")
    for length in range(1, limit + 1):
        copies = len(running)
        logits = model.decode(running, encoded.expand(copies, -1, -1), mask.expand(copies, -1, -1, -1))[:, -1]
        log_probabilities = torch.log_softmax(_allowed(logits, target), dim=-1).cpu()
        scores, places = (totals[:, None] + log_probabilities).flatten().topk(2 * size)
        parents, tokens = places // logits.shape[1], places % logits.shape[1]
        ended = tokens == target.end_id
        for place in ended[:size].nonzero()[:, 0].tolist():
            if scores[place].item() / length > best_score:
                best, best_score = running[parents[place], 1:].tolist(), scores[place].item() / length
        kept = (~ended).nonzero()[:size, 0]
        running = torch.cat((running[parents[kept]], tokens[kept, None].to(running.device)), dim=1)
        totals = scores[kept]
        if best_score >= totals[0].item() / limit:
            return best
    return best if best_score > float("-inf") else running[0, 1:].tolist()


def _allowed(logits: Tensor, target: Vocabulary) -> Tensor:
    logits[:, [target.pad_id, target.begin_id]] = float("-inf")
    return logits


def _text(row: list[int], target: Vocabulary) -> list[int]:
    return row[: row.index(target.end_id)] if target.end_id in row else row
