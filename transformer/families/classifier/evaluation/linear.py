"""Baseline for neural classifiers: the n-grams of kind `ngrams` without vectors, with weaker regularization."""

from collections.abc import Iterable

from transformer.families.classifier.data.ngrams import fit_ngrams
from transformer.families.classifier.evaluation.scores import Labels
from transformer.families.classifier.nn.config import ClassifierConfig, NgramParams
from transformer.families.classifier.nn.ngram_model import NgramModel
from transformer.families.classifier.nn.ngrams import Ids

_STRENGTH = 1.0  # on IMDB's validation split, 0.3 to 16 differ by 0.1 points
_ALL = 2**31


def linear_baseline(config: ClassifierConfig, texts: Iterable[Ids], labels: Labels, longest: int = 2) -> NgramModel:
    """Fit the baseline. config: of the evaluated model; texts, labels: of train; longest: maximum n of the n-grams."""
    params = NgramParams(
        kind="ngrams",
        ngrams=longest,
        features=_ALL,
        strength=_STRENGTH,
        vectors=0,
        vector_ngrams=1,
        vector_strength=_STRENGTH,
    )
    return fit_ngrams(config.model_copy(update={"model": params}), texts, labels).model
