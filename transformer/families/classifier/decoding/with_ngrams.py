"""Classifies with a model of n-grams, which says why."""

from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoint.trained import read_weights, unfit
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.ngram_model import Contribution, NgramModel, lead_of


def read_ngrams(trained: Path, config: ClassifierConfig) -> NgramModel:
    """The model in the folder `trained`. Raises UserError when its file is missing, corrupt or mismatched."""
    state = {name: tensor.numpy() for name, tensor in read_weights(trained).items()}
    try:
        return NgramModel.from_state(config, state)
    except RuntimeError as error:
        raise unfit(trained, error) from error


class NgramClassifier(Classifier):
    """A classifier whose n-grams are at hand."""

    def __init__(
        self,
        model: NgramModel,
        vocabulary: Vocabulary,
        pretokenizer: Path,
        params: ClassificationParams,
        classes: Sequence[str],
    ) -> None:
        """As `Classifier`."""
        super().__init__(model, vocabulary, pretokenizer, params, classes)
        self.model = model

    def reasons(self, text: str, label: str, count: int) -> list[tuple[str, float]]:
        """The n-grams of a text with the largest weights, at most `count`, and how much each favours the label.

        That is its part in the lead of the label's logit over the mean of the others'.
        """
        number = self.classes.index(label)
        found = self.model.contributions(self.encode([text])[0])
        leads = [(self.named(each), lead_of(each.weights, number)) for each in found]
        return sorted(leads, key=lambda pair: -abs(pair[1]))[:count]

    def named(self, contribution: Contribution) -> str:
        """An n-gram as text."""
        return " ".join(self.vocabulary.entries(contribution.ids))
