"""Classification of raw texts, independent of the inference backend."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from transformer.core.observer import Observer
from transformer.core.validation import Section
from transformer.data.store import Ids, padded, sorted_batches
from transformer.data.text import given_texts, one_line
from transformer.data.tokenization import open_pretokenizer, read_pretokenizers
from transformer.data.vocabulary import Vocabulary, clip
from transformer.inference.notes import Notes, in_column, unknown_words


class Scorer(Protocol):
    """A model that returns class logits for token ids."""

    @property
    def positions(self) -> int:
        """Maximum length of a text, in tokens."""

    @property
    def pad_id(self) -> int:
        """Padding token id."""

    @property
    def classes(self) -> int:
        """Number of classes, K."""

    def logits(self, token_ids: Ids) -> NDArray[np.floating[Any]]:
        """Return the logits (B, K) of token_ids (B, S), padded at the end."""


BatchScoring = Callable[[Iterable[Ids]], Iterator[NDArray[np.floating[Any]]]]
"""A function that maps batches of token ids to their logits, in order, such as in other processes."""


def class_logits(
    model: Scorer, sequences: Sequence[Ids], *, batch_size: int, observer: Observer, score: BatchScoring | None = None
) -> NDArray[np.float64]:
    """Return the logits of each text, (N, K), in the order of `sequences`: ids, truncated to the model's positions.

    score: used instead of `model` in this process, such as to compute in others.
    """
    result = np.zeros((len(sequences), model.classes))
    read = [clip(sequence, model.positions) for sequence in sequences]
    batches = sorted_batches(np.array([len(sequence) for sequence in read]), batch_size)
    given = (padded([read[row] for row in rows], model.pad_id) for rows in batches)
    scored = zip(batches, score(given) if score else map(model.logits, given), strict=True)
    for rows, logits in observer.progress(scored, total=len(batches), what="classify"):
        result[rows] = logits
    return result


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of (N, K), rounded to 6 decimals; further digits depend on the batch size (order of sums)."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = (odds / odds.sum(axis=1, keepdims=True)).round(6)
    return shares


def probabilities_of(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of class 1 per text, (N,), or of each class, (N, K), with more than two."""
    return softmax(logits)[:, 1] if logits.shape[1] == 2 else softmax(logits)


class ClassificationParams(Section):
    """How texts are classified."""

    batch_size: int = Field(ge=1)
    """Texts per batch."""


class AnsweringParams(ClassificationParams, extra="ignore"):
    """The parameters of `evaluate` that inference needs, without those of scoring."""


class _Predicted(NamedTuple):
    label: str
    """Class name."""
    probability: float
    """Probability of that class."""


class Prediction(_Predicted):
    """The predicted class of one text, which unpacks to `label` and `probability`."""

    notes: Notes = ()
    """What was not read of the text; one line each."""


_EMPTY = "an empty text gives no evidence: its label is what the model answers without any word"


class Classifier:
    """A classifier of raw text."""

    family = "classifier"

    def __init__(
        self,
        scorer: Scorer,
        vocabulary: Vocabulary,
        pretokenizer: Path,
        params: ClassificationParams,
        classes: Sequence[str],
    ) -> None:
        """classes: their names; pretokenizer: the folder with `pretokenizer.json`.

        Raises UserError if that file is missing or broken.
        """
        self.scorer, self.vocabulary, self.classes = scorer, vocabulary, tuple(classes)
        self._pretokenize = open_pretokenizer(pretokenizer, read_pretokenizers(pretokenizer, "text")["text"])
        self._params = params
        self.score: BatchScoring | None = None
        """Replaces `scorer` in `class_logits`, such as to compute in other processes."""

    def classify(self, texts: Iterable[str]) -> list[Prediction]:
        """Return the prediction for each text. Networks truncate texts to their positions.

        Raises TypeError if `texts` is not an iterable of strings.
        """
        tokens = self.pretokenize(texts)
        sequences = self.vocabulary.encode(tokens)
        answers = [prediction(row, self.classes) for row in self.probabilities(sequences, Observer())]
        for answer, text, ids in zip(answers, tokens, sequences, strict=True):
            answer.notes = tuple(self._read(text, ids))
        return answers

    def _read(self, tokens: str, ids: Ids) -> Iterator[str]:
        """Yield notes about what is read of a text."""
        if len(ids) <= 2:  # begin and end token
            yield _EMPTY
        if len(ids) > (positions := self.scorer.positions):
            yield f"only the first {positions - 2} tokens of the text were read"
        yield from unknown_words(self.vocabulary, tokens, clip(ids, positions))

    def table(self, texts: Iterable[str]) -> dict[str, list[str] | list[float]]:
        """Return the predictions as columns of a data frame."""
        answers = self.classify(texts)
        return {
            "label": [answer.label for answer in answers],
            "probability": [answer.probability for answer in answers],
            "notes": [in_column(answer.notes) for answer in answers],
        }

    def encode(self, texts: Iterable[str]) -> list[Ids]:
        """Return the ids of raw texts, untruncated."""
        return self.vocabulary.encode(self.pretokenize(texts))

    def pretokenize(self, texts: Iterable[str]) -> list[str]:
        """Return the pre-tokenized texts, tokens separated by spaces, as input to the vocabulary."""
        return self._pretokenize([one_line(text) for text in given_texts(texts)])

    def probabilities(self, sequences: Sequence[Ids], observer: Observer) -> NDArray[np.float64]:
        """Return the probability of class 1 per text, (N,), or of each class, (N, K). sequences: ids of whole texts."""
        size, score = self._params.batch_size, self.score
        return probabilities_of(class_logits(self.scorer, sequences, batch_size=size, observer=observer, score=score))


def prediction(given: "float | NDArray[np.float64]", classes: Sequence[str]) -> Prediction:
    """Return the prediction for the probability of class 1 of two, or for the probabilities (K,) of more classes."""
    if isinstance(given, np.ndarray) and given.ndim:
        return Prediction(classes[int(given.argmax())], round(float(given.max()), 6))
    probability = float(given)
    return Prediction(classes[probability >= 0.5], round(max(probability, 1 - probability), 6))
