"""export: the translator as a bundle, which must translate as evaluate did."""

from pathlib import Path

from transformer.export.bundle import open_bundle, write_bundle
from transformer.export.card import model_card
from transformer.export.check import answers_by_split, disagreement
from transformer.export.config import ExportParams
from transformer.files import read_json
from transformer.observer import Observer
from transformer.params.schema import Hardware, StageParams
from transformer.tasks.translation.inference import DecodingParams, Translator
from transformer.text.pretokenize import read_pretokenizers
from transformer.training.config import TrainParams
from transformer.training.device import prepare

_USE = """\
Translates {source} to {target}. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.translate(["..."])
"""


class Params(StageParams):
    """What the stage reads."""

    train: TrainParams
    evaluate: DecodingParams
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
    """Write the bundle and check it. Returns the number of translations that agreed."""
    compute = prepare(params.hardware)
    figures = read_json(evaluation)
    languages = {side: params.language for side, params in read_pretokenizers(tokens).items()}
    card = model_card(
        f"{languages['source']} to {languages['target']} Transformer",
        _USE.format(**languages),
        provenance=read_json(corpus / "provenance.json"),
        params={"model": read_json(trained / "config.json")["model"], "train": params.train.model_dump()},
        figures=figures | {"training": read_json(training)},
    )
    main_metric = {"name": "validation.bleu", "value": figures["validation"]["bleu"], "higher_is_better": True}
    config = {"decoding": params.evaluate.model_dump(), "main_metric": main_metric}
    write_bundle(bundle, "translation", trained=trained, vocab=vocab, tokens=tokens, card=card, config=config)
    translator: Translator = open_bundle(bundle, compute.device.type)
    verified = 0
    for split, rows in answers_by_split(predictions, params.export.verify_rows):
        observer.say(f"checking {len(rows):,} translations of the exported model on {split}")
        for row, answer in zip(rows, translator.translate([row["source"] for row in rows]), strict=True):
            if answer != row["hypothesis"]:
                raise disagreement(row["source"], answer, row["hypothesis"])
        verified += len(rows)
    return {"verified": float(verified)}
