"""The declaration of the language task."""

from transformer.core.task import Task

TASK = Task(
    name="language",
    family="language",
    unit="text",
    examples={
        "text": (
            "I would not call the result lifeless. The costumes are hardly dull.",
            "The film is not charming. The humor is nothing but silly.",
        ),
    },
)
