"""The texts that describe a language model to people."""

from transformer.core.task import Words

WORDS = Words(
    title="Language model",
    use="""\
{use} Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    {call}
    model.score(["..."])  # log probabilities
    model.embed(["..."])  # one vector per text
""",
)
