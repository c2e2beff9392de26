"""Greedy search."""

from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.interface import Generator, Hypothesis, Sources
from transformer.families.seq2seq.decoding.stepwise import extend


def greedy_search(
    model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams
) -> list[list[Hypothesis]]:
    """The most probable next token again and again; the first of equal ones."""
    return extend(model, sources, target, params, _most_probable)


def _most_probable(log_probabilities: Tensor, rows: Tensor, step: int) -> Tensor:
    return log_probabilities.argmax(dim=-1)
