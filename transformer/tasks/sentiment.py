"""The declaration of the sentiment task."""

from transformer.core.task import Task
from transformer.families.classifier import FAMILY

TASK = Task(
    name="sentiment",
    family=FAMILY,
    classes=("negative", "positive"),
    unit="review",
    examples={
        "text": (
            "I would not call the result lifeless. The costumes are hardly dull.",
            "The film is not charming. The humor is nothing but silly.",
        ),
    },
    card_title="Sentiment classifier",
    card_use="""\
Says whether a review is {classes}. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.classify(["..."])
""",
    corpus_folders=("imdb",),
)
