"""Translation of raw text, independent of the inference backend."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.data.text import given_texts, one_line
from transformer.data.tokenization import detokenize, open_pretokenizer, read_pretokenizers
from transformer.data.vocabulary import Vocabulary, clip
from transformer.families.seq2seq.decode import DecodingParams
from transformer.inference.notes import Notes, in_column, unknown_words
from transformer.inference.search import Hypothesis


class AnsweringParams(DecodingParams, extra="ignore"):
    """The parameters of `evaluate` that inference needs, without those of scoring."""


class Decoder(Protocol):
    """Decoder of target sequences: our search on some engine, or an engine's own."""

    knows_stopping: bool
    """True if the decoder supports `DecodingParams.stopping`."""

    @property
    def positions(self) -> int:
        """Maximum source length, in tokens."""

    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source, in source order; arguments as in `decode.decode`."""


class _Scored(NamedTuple):
    text: str
    score: float
    """Log probability, normalized according to the decoding parameters."""


class Translation(_Scored):
    """One translation of a text, which unpacks to `text` and `score`."""

    notes: Notes = ()
    """What was not read of the text, and whether the translation stops short; one line each."""


_UNFINISHED = "the translation reached its maximum length and stops there"


class Translator:
    """A translator of raw text."""

    family = "seq2seq"

    def __init__(
        self, decoder: Decoder, vocabularies: dict[str, Vocabulary], pretokenizer: Path, decoding: DecodingParams
    ) -> None:
        """decoder: uses the vocabularies `source` and `target`; pretokenizer: the folder with `pretokenizer.json`.

        Raises UserError if that is missing or broken.
        """
        self.decoder, self.vocabularies = decoder, vocabularies
        self.pretokenizers = read_pretokenizers(pretokenizer, "source", "target")
        self._source, self._target = vocabularies["source"], vocabularies["target"]
        self._pretokenize = open_pretokenizer(pretokenizer, self.pretokenizers["source"])
        self.decoding = decoding
        """May be replaced; takes effect with the next call."""

    def translate(self, texts: Iterable[str], *, first: int = 0, decoding: DecodingParams | None = None) -> list[str]:
        """Return the best translation of each text; empty texts stay empty. Otherwise as `translate_n_best`."""
        return [found[0].text for found in self.translate_n_best(texts, first=first, decoding=decoding)]

    def table(self, texts: Iterable[str], decoding: DecodingParams | None = None) -> dict[str, list[str]]:
        """Return the translations as data frame columns; the second best is `translation_2`, "" if there is none.

        `notes` are those of the best one.
        """
        found = self.translate_n_best(texts, decoding=decoding)
        columns = {}
        for rank in range((decoding or self.decoding).n_best):
            name = f"translation_{rank + 1}" if rank else "translation"
            columns[name] = [each[rank].text if rank < len(each) else "" for each in found]
        return {**columns, "notes": [in_column(each[0].notes) for each in found]}

    def translate_n_best(
        self, texts: Iterable[str], *, first: int = 0, decoding: DecodingParams | None = None
    ) -> list[list[Translation]]:
        """Return up to `decoding.n_best` translations of each text, best first.

        The best has the highest score, or with `mbr_utility` the highest expected utility. An empty text has one empty
        translation.

        first: number of the first text in the whole input, for sampling and messages; decoding: overrides the model's
        own for this call. Raises UserError if `long_sources` is `refuse` and a text is longer than the model's
        positions, and TypeError if `texts` is not an iterable of strings.
        """
        decoding = decoding or self.decoding
        tokens = self.pretokenize(texts)
        sources = self._source.encode(tokens)
        read = [tuple(self._read(*each, decoding)) for each in zip(tokens, sources, strict=True)]
        hypotheses = self.hypotheses(sources, decoding, Observer(), first)
        return [
            [self._translation(each, notes) for each in found] for found, notes in zip(hypotheses, read, strict=True)
        ]

    def _read(self, tokens: str, source: Ids, decoding: DecodingParams) -> Iterator[str]:
        """Yield notes about what is read of a source."""
        positions = self.decoder.positions
        if len(source) > positions and decoding.long_sources == "cut":
            yield f"only the first {positions - 2} tokens of the text were read"
            source = clip(source, positions)
        elif len(source) > positions:
            yield f"the text was translated in parts of at most {positions - 2} tokens"
        yield from unknown_words(self._source, tokens, source)

    def _translation(self, found: Hypothesis, notes: Notes) -> Translation:
        translation = Translation(self.text(self.line(found)), found.score)
        translation.notes = notes if found.finished else (*notes, _UNFINISHED)
        return translation

    def hypotheses(
        self, sources: Sequence[Ids], decoding: DecodingParams, observer: Observer, first: int = 0
    ) -> list[list[Hypothesis]]:
        """Return each source's hypotheses; an empty one for sources without tokens, where a model hallucinates."""
        filled = [index for index, source in enumerate(sources) if len(source) > 2]  # more than begin and end token
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
        """Return the best target of each encoded source: space-separated tokens, or text for subword vocabularies.

        The result is always a single line, whatever bytes the model generates.
        """
        return [self.line(found) for found in self.best_of_each(sources, observer)]

    def decode_ids(self, sources: Sequence[Ids], observer: Observer) -> list[list[int]]:
        """Return the best target ids of each encoded source, without begin and end token."""
        return [found.ids for found in self.best_of_each(sources, observer)]

    def best_of_each(self, sources: Sequence[Ids], observer: Observer) -> list[Hypothesis]:
        """Return the best hypothesis of each encoded source."""
        return [found[0] for found in self.hypotheses(sources, self.decoding, observer)]

    def line(self, found: Hypothesis) -> str:
        """Return a hypothesis as `decode` does."""
        return one_line(self._target.decode(found.ids))

    def best(self, source: Ids) -> Hypothesis:
        """Return the best hypothesis of one encoded source."""
        return self.decoder([source], self.decoding, Observer(), None)[0][0]

    def text(self, decoded: str) -> str:
        """Turn a result of `decode` into detokenized text."""
        return detokenize(decoded) if self.pretokenizers["target"].kind == "spacy" else decoded
