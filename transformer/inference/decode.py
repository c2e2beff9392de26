"""The search of all models: batches of sources to hypotheses, by greedy search, beam search or sampling."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from transformer.core.observer import Observer
from transformer.data.vocabulary import Vocabulary
from transformer.inference.beam import beam_search
from transformer.inference.search import Generator, Hypothesis, SearchParams, Sources
from transformer.inference.stepwise import greedy_search, sample

Rows = Sequence[int] | NDArray[np.int64]
BatchSearch = Callable[[Iterable[Sources]], Iterator[list[list[Hypothesis]]]]
"""A function that yields the hypotheses of each batch, in order, such as from other processes."""
_METHODS = {"greedy": greedy_search, "beam": beam_search, "sample": sample}


def search(model: Generator, batch: Sources, target: Vocabulary, params: SearchParams) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source of a batch, best first; samples in drawing order."""
    method = "greedy" if params.method == "beam" and params.beam_size == 1 else params.method
    return _METHODS[method](model, batch, target, params)


def decode(
    batches: Sequence[Rows],
    sources: Callable[[Rows], Sources],
    searched: BatchSearch,
    observer: Observer,
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each row, by its number, independent of the batches.

    batches: the rows of each, every row once; sources: makes a batch of rows when the search asks for it.
    """
    results: list[list[Hypothesis]] = [[] for _ in range(sum(map(len, batches)))]
    found = zip(batches, searched(map(sources, batches)), strict=True)
    for rows, of_batch in observer.progress(found, total=len(batches), what="decode"):
        for row, hypotheses in zip(rows, of_batch, strict=True):
            results[row] = hypotheses
    return results
