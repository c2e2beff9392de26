"""The declaration of the translation task."""

from transformer.core.task import Task
from transformer.families.seq2seq import FAMILY

TASK = Task(
    name="translation",
    family=FAMILY,
    unit="pair",
    examples={
        "de": (
            "Blonde Mädchen bemerken, dass ein schwarzer Schwan zwei stolze Touristinnen beobachtet.",
            "Der kleine Mann, der auf einem Strohdach liegt, hört einem Nachbarn zu.",
        ),
        "en": (
            "Blond girls notice that a black swan is watching two proud tourists.",
            "The small man who is lying on a thatched roof is listening to a neighbor.",
        ),
    },
    card_title="{source} to {target} Transformer",
    card_use="""\
Translates {source} to {target}. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.translate(["..."])
""",
    corpus_folders=("multi30k",),
)
