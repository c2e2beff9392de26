"""Handling of sources longer than the model's positions."""

from collections.abc import Sequence

import numpy as np

from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import clip
from transformer.generation.interface import Hypothesis


def fit_sources(
    sources: Sequence[Ids], positions: int, policy: str, *, numbers: Sequence[int] | None = None
) -> tuple[list[Ids], list[int]]:
    """Return sources of at most `positions` ids, each with the index of its original source.

    policy: `cut` truncates; `split` makes parts of similar length, each between begin and end token; `refuse` raises
    UserError with the text's number, counted from 1.
    """
    fitting: list[Ids] = []
    owners: list[int] = []
    for index, source in enumerate(sources):
        if len(source) > positions and policy == "refuse":
            number = (index if numbers is None else numbers[index]) + 1
            raise UserError(
                f"text {number} has {len(source)} tokens and the model {positions} positions: shorten the text, or set"
                " evaluate.long_sources to `split` or `cut`"
            )
        parts = _split(source, positions) if policy == "split" else [clip(source, positions)]
        fitting += parts
        owners += [index] * len(parts)
    return fitting, owners


def _split(source: Ids, positions: int) -> list[Ids]:
    if len(source) <= positions:
        return [source]
    inner = source[1:-1]
    parts = np.array_split(inner, -(-len(inner) // (positions - 2)))
    return [np.concatenate((source[:1], part, source[-1:])) for part in parts]


def joined(parts: Sequence[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the hypotheses of a source's parts: the first of each part concatenated, then the second, ...

    Scores and log probabilities are summed. A part with fewer hypotheses repeats its last one.
    """
    if len(parts) == 1:
        return parts[0]
    ranks = max(len(found) for found in parts)
    return [_concatenated([found[min(rank, len(found) - 1)] for found in parts]) for rank in range(ranks)]


def _concatenated(hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    return Hypothesis(
        [token for hypothesis in hypotheses for token in hypothesis.ids],
        sum(hypothesis.score for hypothesis in hypotheses),
        sum(hypothesis.log_probability for hypothesis in hypotheses),
        all(hypothesis.finished for hypothesis in hypotheses),
    )
