"""What a server tells besides a translation: alternatives, unknown words, and what each word attends to."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.families.seq2seq.attended import attention, cross_maps
from transformer.families.seq2seq.decode import DecodingParams
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.families.seq2seq.translator import Translator
from transformer.inference.details import described, rounded

_ALTERNATIVES = 10
_LONGEST = 100  # tokens: of longer texts, a map is neither quick nor readable


def details(
    translator: Translator, network: Callable[[], TorchTranslator], decoding: DecodingParams, text: str
) -> dict[str, Any]:
    """Return the `source` tokens and the best `answers`: text, score, tokens and, for each token, its attention.

    The attention to the source tokens is the mean over the decoder's layers and heads; None for long texts and models
    without attention. network: opens the model in PyTorch.
    """
    source, target = translator.vocabularies["source"], translator.vocabularies["target"]
    (tokens,) = translator.pretokenize([text])
    (ids,) = source.encode([tokens])
    (found,) = translator.hypotheses([ids], decoding, Observer())
    short = 2 < len(ids) <= min(_LONGEST, translator.decoder.positions)
    answers = []
    for each in found[:_ALTERNATIVES]:
        attended = _attention(network(), ids, each.ids) if short and 0 < len(each.ids) < _LONGEST else None
        answers.append(
            {
                "text": translator.text(translator.line(each)),
                "score": rounded(each.score),
                "tokens": described(target, each.ids),
                "attention": attended,
            }
        )
    return {"source": described(source, ids[1:-1].tolist(), tokens), "answers": answers}


def _attention(translator: TorchTranslator, source: Ids, target: Sequence[int]) -> list[list[float]] | None:
    if len(target) >= translator.decoder.positions:
        return None
    given = [translator.vocabularies["target"].begin_id, *target]
    maps = [weights[0].float().mean(0) for weights in cross_maps(attention(translator, source, given)).values()]
    return rounded(torch.stack(maps).mean(0)[: len(target), 1:-1].cpu(), 3) if maps else None
