"""Decoding by definition: one sentence at a time, with the whole prefix through the decoder for each token."""

import math
from functools import cache

import torch

from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary
from transformer.families.seq2seq.decode import DecodingParams
from transformer.families.seq2seq.interface import Seq2SeqModel

Scored = tuple[float, list[int]]
"""A log probability and target ids, including the end token if there is one."""


def next_log_probabilities(
    model: Seq2SeqModel, source: Ids, ids: list[int], target: Vocabulary, ngram: int | None = None
) -> list[float]:
    values = _without_repetitions(model, tuple(source.tolist()), (target.begin_id, *ids), target.pad_id)
    return [float("-inf") if ngram and repeats([*ids, token], ngram) else value for token, value in enumerate(values)]


@cache
def _without_repetitions(
    model: Seq2SeqModel, source: tuple[int, ...], given: tuple[int, ...], pad_id: int
) -> list[float]:
    """given: begins with the begin token. Several searches ask the same."""
    with torch.no_grad():
        logits = model.output(model(torch.tensor([source]), torch.tensor([given])))[0, -1]
    logits[[pad_id, given[0]]] = float("-inf")
    values: list[float] = logits.log_softmax(dim=-1).tolist()
    return values


def repeats(ids: list[int], ngram: int) -> bool:
    runs = [tuple(ids[start : start + ngram]) for start in range(len(ids) - ngram + 1)]
    return len(set(runs)) < len(runs)


def log_probability(model: Seq2SeqModel, source: Ids, ids: list[int], target: Vocabulary) -> float:
    """The log probability of ids, including any end token; all positions in one forward pass."""
    with torch.no_grad():
        given = torch.tensor([[target.begin_id, *ids[:-1]]])
        logits = model.output(model(torch.from_numpy(source)[None], given))[0]
    logits[:, [target.pad_id, target.begin_id]] = float("-inf")
    return float(logits.log_softmax(dim=-1)[range(len(ids)), ids].sum())


def score(log_probability: float, length: int, kind: str, alpha: float) -> float:
    divisors: dict[str, float] = {"none": 1.0, "length": length**alpha, "gnmt": (5 + length) ** alpha / 6**alpha}
    return log_probability / divisors[kind]


def greedy(model: Seq2SeqModel, source: Ids, target: Vocabulary, steps: int) -> list[int]:
    ids: list[int] = []
    for _ in range(steps):
        values = next_log_probabilities(model, source, ids, target)
        ids.append(max(range(len(values)), key=values.__getitem__))
        if ids[-1] == target.end_id:
            break
    return [i for i in ids if i != target.end_id]


def beam(model: Seq2SeqModel, source: Ids, target: Vocabulary, params: DecodingParams) -> list[list[int]]:
    """Beam search that stops according to `params.stopping`; `exact` never before the maximum length."""

    def of(found: Scored, length: int) -> float:
        return -score(found[0], length, params.length_normalization, params.length_penalty)

    running: list[Scored] = [(0.0, [])]
    finished: list[Scored] = []
    for _ in range(params.max_length):
        candidates: list[Scored] = []
        for total, ids in running:
            values = next_log_probabilities(model, source, ids, target, params.no_repeat_ngram)
            candidates += [(total + v, [*ids, token]) for token, v in enumerate(values) if not math.isinf(v)]
        candidates.sort(key=lambda candidate: -candidate[0])
        candidates = candidates[: 2 * params.beam_size]
        finished += [found for found in candidates[: params.beam_size] if found[1][-1] == target.end_id]
        running = [found for found in candidates if found[1][-1] != target.end_id][: params.beam_size]
        if params.stopping != "exact" and running and len(finished) >= params.beam_size:
            worst = sorted(of(found, len(found[1])) for found in finished)[params.beam_size - 1]
            if params.stopping == "first" or worst <= of(running[0], len(running[0][1])):
                break

    def by_length(found: Scored) -> float:
        return of(found, len(found[1]))

    ranked = [*sorted(finished, key=by_length), *sorted(running, key=by_length)]
    return [[i for i in ids if i != target.end_id] for _, ids in ranked[: params.n_best]]


def everything(model: Seq2SeqModel, source: Ids, target: Vocabulary, max_length: int) -> list[Scored]:
    """Every finished target of at most `max_length` tokens."""
    found: list[Scored] = []
    waiting: list[Scored] = [(0.0, [])]
    while waiting:
        total, ids = waiting.pop()
        for token, value in enumerate(next_log_probabilities(model, source, ids, target)):
            if token == target.end_id:
                found.append((total + value, [*ids, token]))
            elif not math.isinf(value) and len(ids) + 1 < max_length:
                waiting.append((total + value, [*ids, token]))
    return found
