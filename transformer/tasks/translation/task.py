"""The declaration of the translation task."""

from transformer.core.task import Task

TASK = Task(
    name="translation",
    family="seq2seq",
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
)
