"""Target sequences for many sources."""

from collections.abc import Sequence

import numpy as np
import torch

from transformer.decoding.seq2seq.beam import beam_search
from transformer.decoding.seq2seq.config import DecodingParams
from transformer.decoding.seq2seq.greedy import greedy_search
from transformer.decoding.seq2seq.interface import Generator, Hypothesis, Sources
from transformer.decoding.seq2seq.sampling import sample
from transformer.observer import Observer
from transformer.text.batching import Ids, pad, sorted_batches
from transformer.text.vocabulary import Vocabulary, clip

_METHODS = {"greedy": greedy_search, "beam": beam_search, "sample": sample}


def decode(
    model: Generator,
    sources: Sequence[Ids],
    target: Vocabulary,
    params: DecodingParams,
    observer: Observer,
    *,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses for each source, in the order of the sources; they do not depend on the batch size.

    sources: ids between begin and end token; those longer than the model's positions are cut. numbers: of the
    sources, which seed sampling; by default their places. Each source has `n_best` hypotheses, or fewer where there
    are no more.
    """
    positions = model.config.model.max_length
    device = next(model.parameters()).device
    clipped = [clip(source, positions) for source in sources]
    method = "greedy" if params.method == "beam" and params.beam_size == 1 else params.method
    results: list[list[Hypothesis]] = [[] for _ in clipped]
    batches = sorted_batches(np.array([len(source) for source in clipped], dtype=np.int64), params.batch_size)
    model.eval()
    with torch.inference_mode():
        for rows in observer.progress(batches, total=len(batches), what="decode"):
            batch = Sources(
                pad([clipped[row] for row in rows], model.config.source_pad_id).to(device),
                limits=[params.limit(len(clipped[row]) - 2, positions) for row in rows],
                numbers=[int(row) if numbers is None else numbers[row] for row in rows],
            )
            for row, hypotheses in zip(rows, _METHODS[method](model, batch, target, params), strict=True):
                results[row] = hypotheses
    return results
