"""Greedy decoding with cached keys and values."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.nn.seq2seq.interface import Seq2SeqModel
from transformer.observer import Observer
from transformer.text.batching import Ids, pad, sorted_batches
from transformer.text.vocabulary import Vocabulary, clip


def greedy_decode(
    model: Seq2SeqModel,
    sources: Sequence[Ids],
    target: Vocabulary,
    *,
    max_length: int,
    batch_size: int,
    observer: Observer,
) -> list[list[int]]:
    """The most probable next token again and again, for each source, until the end token or `max_length` tokens.

    sources: ids between begin and end token; those longer than the model's positions are cut. Returns target ids
    without begin and end token, in the order of the sources; they do not depend on `batch_size`.
    """
    limit = model.config.model.max_length
    device = next(model.parameters()).device
    clipped = [clip(source, limit) for source in sources]
    results: list[list[int]] = [[] for _ in clipped]
    batches = sorted_batches(np.array([len(source) for source in clipped]), batch_size)
    model.eval()
    with torch.inference_mode():
        for rows in observer.progress(batches, total=len(batches), what="decode"):
            source_ids = pad([clipped[row] for row in rows], model.config.source_pad_id).to(device)
            decoded = _decode_batch(model, source_ids, target, min(max_length, limit - 1))
            for row, ids in zip(rows, decoded, strict=True):
                results[row] = ids
    return results


def _decode_batch(model: Seq2SeqModel, source_ids: Tensor, target: Vocabulary, steps: int) -> list[list[int]]:
    """source_ids: (B, S). Rows leave the batch as they end."""
    cache = model.start(source_ids)
    results: list[list[int]] = [[] for _ in range(len(source_ids))]
    active = torch.arange(len(source_ids), device=source_ids.device)
    last = torch.full_like(active, target.begin_id)
    for _ in range(steps):
        logits = model.step(last, cache)
        logits[:, [target.pad_id, target.begin_id]] = float("-inf")  # no target token: never learned, never wanted
        last = logits.argmax(dim=-1)
        running = last.ne(target.end_id)
        for row, token in _pairs(active[running], last[running]):
            results[row].append(token)
        if not running.all():
            active, last = active[running], last[running]
            if not len(active):
                break
            cache.select(running.nonzero()[:, 0])
    return results


def _pairs(rows: Tensor, tokens: Tensor) -> Iterator[tuple[int, int]]:
    return zip(rows.tolist(), tokens.tolist(), strict=True)
