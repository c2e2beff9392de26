"""The texts that describe a sentiment model to people."""

from transformer.core.task import Words

WORDS = Words(
    folders=("imdb",),
    title="Sentiment classifier",
    use="""\
Says whether a review is {classes}. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.classify(["..."])
""",
)
