"""Models, vocabularies and parameters for the decoding tests."""

from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.builders import LAYERS, seq2seq
from transformer.core.observer import Observer
from transformer.data.store import Ids, padded
from transformer.data.vocabulary import WORD_SPECIALS, Vocabulary, words
from transformer.families.seq2seq.decode import DecodingParams, translate
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqModel, Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.inference.search import Hypothesis

PARAMS: dict[str, Any] = {
    "method": "greedy",
    "beam_size": 4,
    "n_best": 1,
    "stopping": "exact",
    "length_normalization": "length",
    "length_penalty": 1.0,
    "no_repeat_ngram": None,
    "max_length": 20,
    "max_length_ratio": None,
    "max_length_extra": 10,
    "long_sources": "cut",
    "mbr_utility": "none",
    "mbr_scale": 0.5,
    "temperature": 1.0,
    "top_k": None,
    "top_p": None,
    "seed": 1,
    "batch_size": 100,
}


def params(**changes: Any) -> DecodingParams:
    return DecodingParams(**(PARAMS | changes))


@cache
def vocabulary(size: int) -> Vocabulary:
    """Padding 0, unknown 1, begin 2, end 3, then words."""
    return Vocabulary(words({word: i for i, word in enumerate([*WORD_SPECIALS, *(f"w{i}" for i in range(size - 4))])}))


def sources() -> list[Ids]:
    generator = np.random.default_rng(0)
    return [generator.integers(4, 40, size=length) for length in (3, 9, 1, 5, 31, 9, 2)]


def run(model: Seq2SeqModel, encoded: list[Ids], **changes: Any) -> list[list[Hypothesis]]:
    target = vocabulary(model.config.target_size)
    return translate(TorchGenerator(model, target), encoded, target, params(**changes), Observer())


@cache
def tiny(seed: int, *, target_size: int = 6, sharpness: float = 4.0) -> Seq2SeqTransformer:
    """A random model in float64 with varied next-token distributions; `sharpness` makes them more peaked."""
    torch.manual_seed(seed)
    layers = Seq2SeqParams(**(LAYERS | {"encoder_layers": 1, "decoder_layers": 1, "tie_embeddings": "none"}))
    config = Seq2SeqConfig(model=layers, source_size=12, target_size=target_size, source_pad_id=0, target_pad_id=0)
    model = Seq2SeqTransformer(config).double().eval()
    with torch.no_grad():
        model.output.weight.mul_(sharpness)
        model.output.bias.normal_()
    return model


@cache
def trained(norm: str) -> Seq2SeqTransformer:
    """A model that has learned to copy a little, so that its translations differ in tokens and length."""
    model = seq2seq(norm=norm).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    generator = np.random.default_rng(1)
    for _ in range(120):
        copied = [generator.integers(4, 30, size=generator.integers(1, 12)) for _ in range(32)]
        target_ids = torch.from_numpy(padded([np.concatenate(([2], ids, [3])) for ids in copied], 0))
        logits = model.output(model(torch.from_numpy(padded(copied, 0)), target_ids[:, :-1]))
        loss = F.cross_entropy(logits.transpose(1, 2), target_ids[:, 1:], ignore_index=0)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()
