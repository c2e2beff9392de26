"""Converts a fixture's bundle by the stage's code."""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.stages import Said
from tests.training.small import own_torch_settings
from transformer.core.files import read_json, write_json, write_table
from transformer.core.paths import Paths
from transformer.core.task import Task, open_task
from transformer.core.validation import Hardware
from transformer.data.tokenization import read_pretokenizers, write_rules
from transformer.inference.bundle import open_bundle
from transformer.inference.conversion import ConvertParams
from transformer.inference.exporting import Row

BUNDLES = Path(__file__).with_name("bundles")
"""Exported models, one of each kind, after one epoch on 60 rows of the sample corpus."""
TEXTS = {
    "seq2seq": ["Ein Hund schläft.", "Zwei Frauen lesen ein Buch, und ein Mann singt!", "Kinder spielen."],
    "classifier": ["I hated it.", "The film is a triumph, and the cast shines.", "Not bad at all!"],
}


def copied(name: str, folder: Path, decoding: dict[str, Any]) -> Path:
    """An exported model of the fixtures, with a card and the rules of its tokenizer."""
    bundle = folder / "models" / "bundle"
    shutil.copytree(BUNDLES / name, bundle)
    (bundle / "README.md").write_text("# Model card\n")
    if decoding:
        content = read_json(bundle / "config.json")
        write_json(bundle / "config.json", content | {"decoding": content["decoding"] | decoding})
    write_rules(bundle, read_pretokenizers(bundle).values())
    return bundle


def predictions(bundle: Path, task: Task) -> Path:
    """What evaluate would have written about the model."""
    model: Any = open_bundle(bundle, "cpu")
    rows: list[Row] = []
    for number, text in enumerate(TEXTS[task.family.name] * 4):
        text = f"{text} {number}" if number > 2 else text
        text = " ".join([text] * 25) if number == 11 else text  # beyond the model's positions
        if task.family.name == "seq2seq":
            row = {"source": text, "reference": "A dog is sleeping .", "hypothesis": model.translate([text])[0]}
        else:
            (answer,) = model.classify([text])
            row = {
                "text": text,
                "label": "positive",
                "prediction": answer.label,
                "probability": str(answer.probability),
            }
        rows.append({"split": "validation", **row})
    path = bundle.parent / "predictions.tsv"
    write_table(path, list(rows[0]), [[*row.values()] for row in rows])
    return path


class Conversion:
    """The stage's code, run on a fixture."""

    def __init__(self, name: str, folder: Path, **decoding: Any) -> None:
        self.task = open_task(name.partition("-")[0])
        self.bundle = copied(name, folder, decoding)
        self.predictions = predictions(self.bundle, self.task)
        root = self.bundle.parent
        self.paths = Paths(data=root, models=root, reports=root)
        self.said = Said()

        self.code: Any = import_module(f"transformer.families.{self.task.family.name}.convert")

    def params(self, **changes: Any) -> Any:
        hardware = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False, portable=False)
        leaves: dict[str, Any] = {"formats": ["ctranslate2", "onnx"], "int8": True, "verify_rows": None}
        convert = ConvertParams(**(leaves | changes))
        return self.code.Params.model_construct(convert=convert, hardware=hardware)

    def converter(self) -> Any:
        name = "Seq2SeqConverter" if self.task.family.name == "seq2seq" else "ClassifierConverter"
        return getattr(self.code, name)(self.params(), self.paths)

    def run(self, **changes: Any) -> dict[str, Any]:
        params = self.params(**changes)
        with own_torch_settings():
            self.code.run(self.task, params, self.paths, self.said)
        report: dict[str, Any] = read_json(self.paths.conversion)
        return report

    def compared(self, engine: str) -> dict[str, float]:
        """How the converted model was said to compare with the exported one."""
        (line,) = [line for line in self.said.lines if line.startswith(f"{engine}: ")]
        figures = (figure.split(" ") for figure in line.removeprefix(f"{engine}: ").split("  "))
        return {name: float(value) for name, value in figures}

    def written(self) -> list[str]:
        return sorted(path.name for path in self.paths.converted.iterdir())


def answers(model: Any, task: Task) -> list[Any]:
    asked = model.translate if task.family.name == "seq2seq" else model.classify
    return [*asked([*TEXTS[task.family.name], ""])]
