"""A translation together with the attention that made it."""

from dataclasses import dataclass

import torch

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.encoded.vocabulary import clip
from transformer.families.seq2seq.decoding.translator import Translator
from transformer.figures.tokens import token_labels
from transformer.reporting.attention_maps import Maps, collect_attention


@dataclass(frozen=True)
class AttendedTranslation:
    """One sentence, its translation, and the weights between their tokens."""

    source: list[str]
    """S source tokens, the special ones included."""
    given: list[str]
    """T target tokens that the decoder is given, the begin token first."""
    predicted: list[str]
    """T target tokens that it predicts from them; the end token is the last unless the length ran out."""
    text: str
    """The translation as people write it."""
    maps: Maps
    """(1, H, T, S), (1, H, S, S) or (1, H, T, T) by the name of the attention module."""


def translate_with_attention(translator: Translator, sentence: str, *, longest: int) -> AttendedTranslation:
    """Translate one raw sentence, cut to its first `longest` tokens, then pass both sides through the model once.

    Raises UserError when the sentence has no token.
    """
    (tokens,) = translator.pretokenize([sentence])
    if not tokens:
        raise UserError(f"the sentence {sentence!r} has no token: write another")
    source, target = translator.vocabularies["source"], translator.vocabularies["target"]
    ids = clip(source.encode([tokens])[0], min(longest, translator.model.config.model.max_length))
    (answer,) = translator.decode_ids([ids], Observer())
    device = next(translator.model.parameters()).device
    given = [target.begin_id, *answer]
    with torch.inference_mode(), collect_attention(translator.model) as maps:
        translator.model(torch.from_numpy(ids)[None].to(device), torch.tensor([given], device=device))
    return AttendedTranslation(
        source=token_labels(source, ids),
        given=token_labels(target, given),
        predicted=token_labels(target, [*answer, target.end_id]),
        text=translator.text(target.decode(answer)),
        maps=maps,
    )
