"""Decoding of source batches with greedy search, beam search or sampling."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.minimum_risk import chosen
from transformer.families.seq2seq.decoding.overlong import fit_sources, joined
from transformer.generation.beam import beam_search
from transformer.generation.interface import Generator, Hypothesis, Sources
from transformer.generation.stepwise import best_first, greedy_search, sample

BatchSearch = Callable[[Iterable[Sources], DecodingParams], Iterator[list[list[Hypothesis]]]]
"""A function that yields the hypotheses of each batch, in order, such as from other processes."""
_METHODS = {"greedy": greedy_search, "beam": beam_search, "sample": sample}


def decode(
    model: Generator,
    sources: Sequence[Ids],
    target: Vocabulary,
    params: DecodingParams,
    observer: Observer,
    *,
    numbers: Sequence[int] | None = None,
    search: BatchSearch | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source, in source order, independent of the batch size.

    sources: ids between begin and end token. numbers: the sources' numbers, which seed sampling; default: their
    indices.
    search: replaces `model` in this process, such as to search in others. Each source has `n_best` hypotheses, or fewer
    if no more exist. Raises UserError if `long_sources` is `refuse` and a source has more ids than the model has
    positions.
    """
    positions = model.positions
    fitting, owners = fit_sources(sources, positions, params.long_sources, numbers=numbers)
    seeds = _seeds(owners, numbers)
    results: list[list[Hypothesis]] = [[] for _ in fitting]
    batches = sorted_batches(np.array([len(source) for source in fitting], dtype=np.int64), params.batch_size)

    def given() -> Iterator[Sources]:
        for rows in batches:
            yield Sources(
                padded([fitting[row] for row in rows], model.source_pad_id),
                first=np.full(len(rows), target.begin_id),
                limits=[params.limit(len(fitting[row]) - 2, positions) for row in rows],
                seeds=[seeds[row] for row in rows],
            )

    searched = search(given(), params) if search else (search_batch(model, each, target, params) for each in given())
    found = observer.progress(zip(batches, searched, strict=True), total=len(batches), what="decode")
    for rows, of_batch in found:
        for row, hypotheses in zip(rows, of_batch, strict=True):
            results[row] = hypotheses
    parts: list[list[list[Hypothesis]]] = [[] for _ in sources]
    for owner, hypotheses in zip(owners, results, strict=True):
        parts[owner].append(hypotheses)
    whole = [joined(found) for found in parts]
    return [best_first(found) for found in whole] if params.method == "sample" and not params.reranks else whole


def search_batch(
    model: Generator, batch: Sources, target: Vocabulary, params: DecodingParams
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each source of a batch, best first; samples in drawing order.

    Thus the samples of a split source join samples of its parts, not the best of each part.
    """
    method = "greedy" if params.method == "beam" and params.beam_size == 1 else params.method
    searching = params.model_copy(update={"n_best": params.candidates})
    searched = _METHODS[method](model, batch, target, searching)
    return [chosen(best_first(found) if params.reranks else found, target, params) for found in searched]


class Search:
    """A `Decoder` that runs our search on a generator."""

    knows_stopping = True

    def __init__(self, generator: Generator, target: Vocabulary, search: BatchSearch | None = None) -> None:
        """search: as in `decode`."""
        self.generator, self.target, self.search = generator, target, search

    @property
    def positions(self) -> int:
        """Maximum source length, in tokens."""
        return self.generator.positions

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source; arguments as in `decode`."""
        return decode(self.generator, sources, self.target, params, observer, numbers=numbers, search=self.search)


def _seeds(owners: Sequence[int], numbers: Sequence[int] | None) -> list[tuple[int, ...]]:
    """Return the sampling seed of each part: its source's number, plus the part's number from the second part on."""
    seeds: list[tuple[int, ...]] = []
    part = 0
    for index, owner in enumerate(owners):
        part = part + 1 if index and owners[index - 1] == owner else 0
        number = owner if numbers is None else numbers[owner]
        seeds.append((number, part) if part else (number,))
    return seeds
