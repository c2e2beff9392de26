"""A review's answer together with the attention that made it."""

from dataclasses import dataclass

import torch

from transformer.encoded.vocabulary import clip
from transformer.families.classifier.decoding.labels import Prediction, Reviewer, prediction
from transformer.figures.tokens import token_labels
from transformer.reporting.attention_maps import Maps, collect_attention


@dataclass(frozen=True)
class AttendedReview:
    """One review, its answer, and the weights between its tokens."""

    tokens: list[str]
    """S tokens, the special ones included."""
    answer: Prediction
    maps: Maps
    """(1, H, S, S) by the name of the attention module."""


def classify_with_attention(reviewer: Reviewer, text: str, *, longest: int) -> AttendedReview:
    """Classify one raw text, cut to its first `longest` tokens, in one pass of the model."""
    ids = clip(reviewer.encode([text])[0], longest)
    device = next(reviewer.model.parameters()).device
    with torch.inference_mode(), collect_attention(reviewer.model) as maps:
        logits = reviewer.model(torch.from_numpy(ids)[None].to(device))
    positive = logits[0].float().softmax(dim=-1)[1].item()
    put_before = ["[CLS]"] if getattr(reviewer.model.config.model, "pooling", "") == "cls" else []
    return AttendedReview(put_before + token_labels(reviewer.vocabulary, ids), prediction(positive), maps)
