"""Decodes batches of sources with greedy search, beam search or sampling."""

from collections.abc import Sequence

import numpy as np

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.overlong import fit_sources, joined
from transformer.generation.beam import beam_search
from transformer.generation.interface import Generator, Hypothesis, Sources
from transformer.generation.stepwise import greedy_search, sample

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

    sources: ids between begin and end token. numbers: the sources' numbers, which seed sampling; default: their
    indices. Each source has `n_best` hypotheses, or fewer if there are no more. Raises UserError if `long_sources` is
    `refuse` and a source has more ids than the model has positions.
    """
    positions = model.positions
    fitting, owners = fit_sources(sources, positions, params.long_sources, numbers=numbers)
    seeds = _seeds(owners, numbers)
    method = "greedy" if params.method == "beam" and params.beam_size == 1 else params.method
    results: list[list[Hypothesis]] = [[] for _ in fitting]
    batches = sorted_batches(np.array([len(source) for source in fitting], dtype=np.int64), params.batch_size)
    for rows in observer.progress(batches, total=len(batches), what="decode"):
        batch = Sources(
            padded([fitting[row] for row in rows], model.source_pad_id),
            first=np.full(len(rows), target.begin_id),
            limits=[params.limit(len(fitting[row]) - 2, positions) for row in rows],
            seeds=[seeds[row] for row in rows],
        )
        for row, hypotheses in zip(rows, _METHODS[method](model, batch, target, params), strict=True):
            results[row] = hypotheses
    parts: list[list[list[Hypothesis]]] = [[] for _ in sources]
    for owner, hypotheses in zip(owners, results, strict=True):
        parts[owner].append(hypotheses)
    return [joined(found) for found in parts]


class Search:
    """Our search over a generator, as a translator's `Decoder`."""

    def __init__(self, generator: Generator, target: Vocabulary) -> None:
        self.generator, self.target = generator, target

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """As `decode`."""
        return decode(self.generator, sources, self.target, params, observer, numbers=numbers)


def _seeds(owners: Sequence[int], numbers: Sequence[int] | None) -> list[tuple[int, ...]]:
    """The seed of each part's sampling: its source's number, and from the second part on also the part's number."""
    seeds: list[tuple[int, ...]] = []
    part = 0
    for index, owner in enumerate(owners):
        part = part + 1 if index and owners[index - 1] == owner else 0
        number = owner if numbers is None else numbers[owner]
        seeds.append((number, part) if part else (number,))
    return seeds
