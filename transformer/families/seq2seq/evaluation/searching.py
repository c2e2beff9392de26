"""Decoding and scoring in worker processes, each with its own model."""

from collections.abc import Iterable, Iterator
from functools import partial

import torch

from transformer.checkpoint.device import prepare
from transformer.core.schema import Hardware
from transformer.evaluation.inputs import EvaluationInputs
from transformer.families.seq2seq.data.encoded import Pairs, Predicted, predicted
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.decode import search_batch
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator
from transformer.generation.interface import Hypothesis, Sources
from transformer.text.parallel import OrderedMap

_opened: list[TorchTranslator] = []
"""The model opened in this process."""


def open_translator(inputs: EvaluationInputs, decoding: DecodingParams, hardware: Hardware) -> None:
    """Open the trained model in this process. Raises UserError if a file is missing or broken."""
    device = prepare(hardware).device
    _opened[:] = [TorchTranslator(inputs.trained, inputs.vocab, inputs.tokens, decoding, device)]


def opened_translator() -> TorchTranslator:
    """Return the model opened by `open_translator`."""
    return _opened[0]


def search_with(
    ordered_map: OrderedMap, batches: Iterable[Sources], params: DecodingParams
) -> Iterator[list[list[Hypothesis]]]:
    """Yield the hypotheses of each batch, in order, searched in processes that called `open_translator`."""
    return ordered_map(partial(_search, params), batches)


def score_with(ordered_map: OrderedMap, batches: Iterable[Pairs]) -> Iterator[Predicted]:
    """Yield the metrics of each batch, in order, computed in processes that called `open_translator`."""
    return ordered_map(_predicted, batches)


def _predicted(pairs: Pairs) -> Predicted:
    model = opened_translator().model
    with torch.inference_mode():
        return predicted(model, next(model.parameters()).device, pairs)


def _search(params: DecodingParams, batch: Sources) -> list[list[Hypothesis]]:
    translator = opened_translator()
    return search_batch(translator.generator, batch, translator.vocabularies["target"], params)
