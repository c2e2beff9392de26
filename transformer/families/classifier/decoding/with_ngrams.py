"""Classification with an n-gram model, and explanations of its predictions."""

from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoint.trained import read_weights, unfit
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.ngram_model import Contribution, NgramModel, lead_of


def read_ngrams(trained: Path, config: ClassifierConfig) -> NgramModel:
    """Read the model in the folder `trained`. Raises UserError if its file is missing, corrupt or mismatched."""
    state = {name: tensor.numpy() for name, tensor in read_weights(trained).items()}
    try:
        return NgramModel.from_state(config, state)
    except RuntimeError as error:
        raise unfit(trained, error) from error


class NgramClassifier(Classifier):
    """A classifier with access to its n-gram weights."""

    def __init__(
        self,
        model: NgramModel,
        vocabulary: Vocabulary,
        pretokenizer: Path,
        params: ClassificationParams,
        classes: Sequence[str],
    ) -> None:
        """Other arguments as in `Classifier`."""
        super().__init__(model, vocabulary, pretokenizer, params, classes)
        self.model = model

    def reasons(self, text: str, label: str, count: int) -> list[tuple[str, float]]:
        """Return the at most `count` n-grams of a text with the largest contributions to the label.

        The contribution is to the margin of the label's logit over the mean of the others.
        """
        number = self.classes.index(label)
        found = self.model.contributions(self.encode([text])[0])
        leads = [(self.named(each), lead_of(each.weights, number)) for each in found]
        return sorted(leads, key=lambda pair: -abs(pair[1]))[:count]

    def named(self, contribution: Contribution) -> str:
        """Return an n-gram as text."""
        return " ".join(self.vocabulary.entries(contribution.ids))
