"""Translating with a trained model."""

from collections.abc import Sequence
from pathlib import Path

import torch
from pydantic import Field

from transformer.decoding.seq2seq.detokenize import detokenize
from transformer.decoding.seq2seq.greedy import greedy_decode
from transformer.nn.seq2seq.config import Seq2SeqConfig
from transformer.nn.seq2seq.model import Seq2SeqTransformer
from transformer.observer import Observer
from transformer.params.schema import Section
from transformer.text.batching import Ids
from transformer.text.clean import one_line
from transformer.text.pretokenize import PreTokenizer, read_pretokenizers
from transformer.text.vocabulary import read_vocabularies
from transformer.training.trained import load_config, load_weights


class DecodingParams(Section):
    """`translation.evaluate`: how translations are made."""

    max_length: int = Field(ge=1)
    """Most target tokens."""
    batch_size: int = Field(ge=1)
    """Sentences that are decoded together."""


class Translator:
    """A translation model with all that it takes to turn raw text into raw text."""

    task = "translation"

    def __init__(
        self, trained: Path, vocab: Path, pretokenizer: Path, decoding: DecodingParams, device: torch.device
    ) -> None:
        """trained, vocab: what train and build_vocab wrote; pretokenizer: the folder of `pretokenizer.json`.

        Raises UserError when one of them is missing or broken.
        """
        config = load_config(trained, Seq2SeqConfig)
        self.model = Seq2SeqTransformer(config)
        load_weights(trained, self.model)
        self.model.to(device).eval()
        vocabularies, self.pretokenizers = read_vocabularies(vocab), read_pretokenizers(pretokenizer)
        self._source, self._target = vocabularies["source"], vocabularies["target"]
        self._pretokenize = PreTokenizer(self.pretokenizers["source"])
        self._decoding = decoding

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The translation of each text; an empty text stays empty. Texts longer than the model's positions are cut."""
        tokens = self._pretokenize([one_line(text) for text in texts])
        filled = [index for index, text in enumerate(tokens) if text]
        decoded = self.decode(self._source.encode([tokens[index] for index in filled]), Observer())
        translations = [""] * len(texts)
        for index, tokens_of_target in zip(filled, decoded, strict=True):
            translations[index] = self.text(tokens_of_target)
        return translations

    def decode(self, sources: Sequence[Ids], observer: Observer) -> list[str]:
        """The decoded target of each encoded source: tokens separated by spaces, or text for subword vocabularies.

        It is one line, whatever bytes the model wrote.
        """
        decoded = greedy_decode(
            self.model,
            sources,
            self._target,
            max_length=self._decoding.max_length,
            batch_size=self._decoding.batch_size,
            observer=observer,
        )
        return [one_line(self._target.decode(ids)) for ids in decoded]

    def text(self, decoded: str) -> str:
        """What `decode` gave, as people write it."""
        return detokenize(decoded) if self.pretokenizers["target"].kind == "spacy" else decoded
