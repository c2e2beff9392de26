"""The declaration of the sentiment task."""

from transformer.core.task import Task

TASK = Task(
    name="sentiment",
    family="classifier",
    classes=("negative", "positive"),
    unit="review",
    examples={
        "text": (
            "I would not call the result lifeless. The costumes are hardly dull.",
            "The film is not charming. The humor is nothing but silly.",
        ),
    },
)
