"""export: the reviewer as a bundle, which must classify as evaluate did."""

from pathlib import Path

from transformer.export.bundle import open_bundle, write_bundle
from transformer.export.card import model_card
from transformer.export.check import answers_by_split, disagreement
from transformer.export.config import ExportParams
from transformer.files import read_json
from transformer.observer import Observer
from transformer.params.schema import Hardware, StageParams
from transformer.tasks.sentiment.inference import ClassificationParams, Reviewer
from transformer.training.config import TrainParams
from transformer.training.device import prepare

_TOLERANCE = 1e-4  # of a probability: sums in another order differ far below it
_USE = """\
Says whether a review is negative or positive. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.classify(["..."])
"""


class Params(StageParams):
    """What the stage reads."""

    train: TrainParams
    evaluate: ClassificationParams
    export: ExportParams
    hardware: Hardware


def run(
    params: Params,
    *,
    corpus: Path,
    tokens: Path,
    vocab: Path,
    trained: Path,
    training: Path,
    evaluation: Path,
    predictions: Path,
    bundle: Path,
    observer: Observer,
) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of answers that agreed."""
    compute = prepare(params.hardware)
    figures = read_json(evaluation)
    card = model_card(
        "Sentiment Transformer",
        _USE,
        provenance=read_json(corpus / "provenance.json"),
        params={"model": read_json(trained / "config.json")["model"], "train": params.train.model_dump()},
        figures=figures | {"training": read_json(training)},
    )
    main_metric = {"name": "validation.accuracy", "value": figures["validation"]["accuracy"], "higher_is_better": True}
    config = {"decoding": params.evaluate.model_dump(), "main_metric": main_metric}
    write_bundle(bundle, "sentiment", trained=trained, vocab=vocab, tokens=tokens, card=card, config=config)
    reviewer: Reviewer = open_bundle(bundle, compute.device.type)
    verified = 0
    for split, rows in answers_by_split(predictions, params.export.verify_rows):
        observer.say(f"checking {len(rows):,} answers of the exported model on {split}")
        for row, answer in zip(rows, reviewer.classify([row["text"] for row in rows]), strict=True):
            near = abs(answer.probability - float(row["probability"])) <= _TOLERANCE
            if not near or answer.label != row["prediction"]:
                raise disagreement(row["text"], str(answer), f"{row['prediction']} {row['probability']}")
        verified += len(rows)
    return {"verified": float(verified)}
