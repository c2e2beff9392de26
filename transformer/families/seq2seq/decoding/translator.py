"""Translates raw text with a trained model, whatever computes it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.generation.detokenize import detokenize
from transformer.generation.interface import Hypothesis
from transformer.text.clean import given_texts, one_line
from transformer.text.pretokenize import open_pretokenizer, read_pretokenizers


class AnsweringParams(DecodingParams, extra="ignore"):
    """The part of `evaluate` that a model needs to translate, without how translations are scored."""


class Decoder(Protocol):
    """Finds target sequences: our search over some engine, or an engine's own."""

    knows_stopping: bool
    """Whether `DecodingParams.stopping` says when a beam is done."""

    @property
    def positions(self) -> int:
        """The longest source, in tokens."""

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each source, in the order of the sources; arguments as in `decode.decode`."""


class Translation(NamedTuple):
    """One translation of a text."""

    text: str
    score: float
    """The log probability, normalized according to the decoding parameters."""


class Translator:
    """A translation model with everything needed to translate raw text into raw text."""

    family = "seq2seq"

    def __init__(
        self, decoder: Decoder, vocabularies: dict[str, Vocabulary], pretokenizer: Path, decoding: DecodingParams
    ) -> None:
        """decoder: over the vocabularies `source` and `target`; pretokenizer: the folder of `pretokenizer.json`.

        Raises UserError when that is missing or broken.
        """
        self.decoder, self.vocabularies = decoder, vocabularies
        self.pretokenizers = read_pretokenizers(pretokenizer, "source", "target")
        self._source, self._target = vocabularies["source"], vocabularies["target"]
        self._pretokenize = open_pretokenizer(pretokenizer, self.pretokenizers["source"])
        self.decoding = decoding
        """May be replaced; takes effect with the next call."""

    def translate(self, texts: Iterable[str], *, first: int = 0, decoding: DecodingParams | None = None) -> list[str]:
        """The best translation of each text; an empty text stays empty. Otherwise as `translate_n_best`."""
        return [found[0].text for found in self.translate_n_best(texts, first=first, decoding=decoding)]

    def table(self, texts: Iterable[str], decoding: DecodingParams | None = None) -> dict[str, list[str]]:
        """The translations as columns, for a data frame; the second best is `translation_2`, "" where there is none."""
        found = self.translate_n_best(texts, decoding=decoding)
        columns = {}
        for rank in range((decoding or self.decoding).n_best):
            name = f"translation_{rank + 1}" if rank else "translation"
            columns[name] = [each[rank].text if rank < len(each) else "" for each in found]
        return columns

    def translate_n_best(
        self, texts: Iterable[str], *, first: int = 0, decoding: DecodingParams | None = None
    ) -> list[list[Translation]]:
        """Up to `decoding.n_best` translations of each text, the best first; an empty text has one empty translation.

        The best one has the highest score, or with `mbr_utility` the most expected utility.

        first: the number of the first text in the whole input, for sampling and messages; decoding: in place of the
        model's own, for this call. Raises UserError if `long_sources` is `refuse` and a text is longer than the model's
        positions, and TypeError if `texts` is not an iterable of strings.
        """
        sources = self._source.encode(self.pretokenize(given_texts(texts)))
        hypotheses = self._hypotheses(sources, decoding or self.decoding, Observer(), first)
        return [
            [Translation(self.text(one_line(self._target.decode(ids))), score) for ids, score, *_ in found]
            for found in hypotheses
        ]

    def _hypotheses(
        self, sources: Sequence[Ids], decoding: DecodingParams, observer: Observer, first: int = 0
    ) -> list[list[Hypothesis]]:
        """Those of each source; the empty one for a source without a token, of which a model would invent a text."""
        filled = [index for index, source in enumerate(sources) if len(source) > 2]  # than begin and end token
        numbers = [first + index for index in filled]
        found = self.decoder([sources[index] for index in filled], decoding, observer, numbers)
        every = [[Hypothesis([], 0.0, 0.0, finished=True)] for _ in sources]
        for index, hypotheses in zip(filled, found, strict=True):
            every[index] = hypotheses
        return every

    def pretokenize(self, texts: Iterable[str]) -> list[str]:
        """Pre-tokenize raw source texts as in training."""
        return self._pretokenize([one_line(text) for text in given_texts(texts)])

    def decode(self, sources: Sequence[Ids], observer: Observer) -> list[str]:
        """The best target of each encoded source: space-separated tokens, or text for subword vocabularies.

        It is always one line, whatever bytes the model generates.
        """
        return [one_line(self._target.decode(ids)) for ids in self.decode_ids(sources, observer)]

    def decode_ids(self, sources: Sequence[Ids], observer: Observer) -> list[list[int]]:
        """The best target ids of each encoded source, without begin and end token."""
        return [found[0].ids for found in self._hypotheses(sources, self.decoding, observer)]

    def best(self, source: Ids) -> Hypothesis:
        """The best hypothesis of one encoded source."""
        return self.decoder([source], self.decoding, Observer(), None)[0][0]

    def text(self, decoded: str) -> str:
        """Turn a result of `decode` into normally written text."""
        return detokenize(decoded) if self.pretokenizers["target"].kind == "spacy" else decoded
