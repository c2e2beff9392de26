"""The texts that describe a translation model to people."""

from transformer.core.task import Words

WORDS = Words(
    folders=("multi30k",),
    title="{source} to {target} Transformer",
    use="""\
Translates {source} to {target}. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.translate(["..."])
""",
)
