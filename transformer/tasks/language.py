"""The declaration of the language task."""

from transformer.core.task import Task
from transformer.families.language import FAMILY

TASK = Task(
    name="language",
    family=FAMILY,
    unit="text",
    examples={
        "text": (
            "I would not call the result lifeless. The costumes are hardly dull.",
            "The film is not charming. The humor is nothing but silly.",
        ),
    },
    card_title="Language model",
    card_use="""\
{use} Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    {call}
    model.score(["..."])  # log probabilities
    model.embed(["..."])  # one vector per text
""",
)
