"""The convert stage of all families: parameters, the loop over formats, and verification reports."""

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, read_table, write_json, writing
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import FORMATS, INT8
from transformer.core.validation import Hardware, Section, StageParams
from transformer.data.vocabulary import Vocabulary
from transformer.evaluation.bootstrap import Floats, interval
from transformer.inference.bundle import MODEL, open_bundle, size_of, write_surroundings
from transformer.inference.sessions import sizes
from transformer.nn.device import prepare

TOLERANCE = 1e-4
"""Maximum difference of a log probability or a probability, in float32."""
TIE = 1e-5
"""Maximum gap of two log probabilities that may swap ranks by floating-point reordering."""
_LARGEST_LOSS = 0.5
"""Maximum loss by quantization to 8 bits, in points of BLEU or accuracy."""


class ConvertParams(Section):
    """`convert` of a task."""

    formats: list[Literal["ctranslate2", "onnx"]]
    """Formats to convert the exported model to; [] for none."""
    int8: bool
    """Also convert with weights of 8 bits: a quarter of the size, and often faster."""
    verify_rows: int | None = Field(ge=1)
    """Rows of the validation split that the converted models must answer as the exported one; null for all."""


@dataclass(frozen=True)
class Conversion:
    """A family's conversion to one format."""

    model: Mapping[str, Any]
    """Model sizes for config.json."""
    example: str
    """Python code that uses the converted model without this package."""
    write: Callable[[Path, bool], None]
    """Writes the weights into a new folder; with 8 bits on request."""
    verify: Callable[[Path, bool], dict[str, float]]
    """Compares the converted model in a folder with the exported one. Raises UserError where they differ."""


def convert_all(
    params: ConvertParams,
    conversions: Mapping[str, Callable[[], Conversion | str]],
    paths: Paths,
    observer: Observer,
) -> dict[str, float]:
    """Write, verify and report the requested formats. Return the size of each in megabytes.

    conversions: by format; one returns a string that explains what the format does not support. A folder gets its
    final name when it is verified. Raises UserError if a converted model differs from the exported one.
    """
    shutil.rmtree(paths.converted, ignore_errors=True)
    with writing(paths.converted):
        paths.converted.mkdir(parents=True)
    report: dict[str, dict[str, Any]] = {}
    for name in [name for name in FORMATS if name in params.formats]:
        conversion = conversions[name]()
        if isinstance(conversion, str):
            observer.say(f"not converted to {name}: {conversion}")
            report[name] = {"refused": conversion}
            continue
        for int8 in (False, True) if params.int8 else (False,):
            engine = f"{name}{INT8 if int8 else ''}"
            observer.say(f"converting to {engine}, and comparing its answers with the exported model's")
            draft = paths.converted / f".{engine}"
            try:
                report[engine] = _written(draft, conversion, engine, int8, paths.bundle, observer)
                with writing(paths.converted / engine):
                    draft.rename(paths.converted / engine)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    write_json(paths.conversion, report)
    return {f"{engine}_mb": round(found["bytes"] / 1e6, 2) for engine, found in report.items() if "bytes" in found}


def _written(
    draft: Path, conversion: Conversion, engine: str, int8: bool, bundle: Path, observer: Observer
) -> dict[str, int]:
    """Write a converted model into `draft` and verify it. Return its size and the number of rows.

    Agreement is logged, not written: engines compute differently on each kind of processor.
    """
    with writing(draft / MODEL):  # by libraries, which open files themselves
        conversion.write(draft / MODEL, int8)
    write_surroundings(draft, bundle, engine=engine, model=conversion.model, example=conversion.example)
    compared = conversion.verify(draft, int8)
    observer.say(f"{engine}: " + "  ".join(f"{name} {value:g}" for name, value in compared.items()))
    found = {"bytes": size_of(draft / MODEL), "rows": int(compared["rows"])}
    _add_to_card(draft / "README.md", engine, found["rows"])
    return found


def _add_to_card(card: Path, engine: str, rows: int) -> None:
    """Append a description of the conversion to the exported model's card."""
    before = card.read_text(encoding="utf-8")
    line = f"Verified against the exported model on {rows:,} rows of the validation split."
    with atomic_write(card) as stream:
        stream.write("\n".join([before, f"## Converted to {engine}\n", line, ""]).encode())


def require_close(engine: str, differences: Sequence[float], what: str) -> dict[str, float]:
    """Report the largest and the mean difference. Raises UserError if float32 differs by more than the tolerance."""
    worst = float(np.max(differences)) if len(differences) else 0.0  # NaN if one is
    if not (worst < math.inf if engine.endswith(INT8) else worst <= TOLERANCE):
        raise UserError(
            f"{engine} differs from the exported model by {worst:.2g} in a {what}, more than {TOLERANCE:g}: not"
            " written; leave this format out of convert.formats"
        )
    return {"worst_difference": _short(worst), "mean_difference": _short(float(np.mean(differences or [0.0])))}


def require_quality(engine: str, name: str, own: float, exported: float, differences: Floats) -> dict[str, float]:
    """Report a score, and its lead over the exported model's with the interval.

    own, exported, differences: in points. Raises UserError if the whole interval lies below the largest allowed loss.
    """
    figures = {name: round(own, 4), f"{name}_minus_exported": round(own - exported, 4)}
    ends = interval(differences)
    if ends is None:
        return figures
    if ends[1] < -_LARGEST_LOSS:
        raise UserError(
            f"{engine} loses {exported - own:.2f} points of {name} on validation (95 % interval {ends[0]:.2f} to"
            f" {ends[1]:.2f}), more than {_LARGEST_LOSS}: not written; set convert.int8 to false"
        )
    low, high = f"{name}_minus_exported_low", f"{name}_minus_exported_high"
    return figures | {low: round(ends[0], 4), high: round(ends[1], 4)}


def _short(value: float) -> float:
    """Round to two digits: further ones differ between machines."""
    return float(f"{value:.2g}")


def _validation_rows(predictions: Path, limit: int | None) -> list[dict[str, str]]:
    """Return the first `limit` rows of the validation split. Raises UserError if there are none."""
    rows = [row for row in read_table(predictions) if row["split"] == "validation"][:limit]
    if not rows:
        raise UserError(f"{predictions} has no validation rows to verify a converted model with: run evaluate")
    return rows


class Params(StageParams):
    """The stage's parameters."""

    convert: ConvertParams
    hardware: Hardware


class Verifying(Protocol):
    """A family's comparison of converted models with the exported one."""

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than floating-point reordering."""


Exported = TypeVar("Exported")
Verification = TypeVar("Verification", bound=Verifying)


class Converter(ABC, Generic[Exported, Verification]):
    """Converts one exported model, which is opened when the first format needs it."""

    kind: type[Exported]
    """Type of the family's opened bundle."""

    def __init__(self, params: Params, paths: Paths) -> None:
        self.params, self.paths = params, paths

    def run(self, observer: Observer) -> dict[str, float]:
        """Write and verify the formats. Return their sizes."""
        prepare(self.params.hardware)
        return convert_all(
            self.params.convert, {"ctranslate2": self.ctranslate2, "onnx": self.onnx}, self.paths, observer
        )

    @abstractmethod
    def ctranslate2(self) -> Conversion | str:
        """Return the conversion to CTranslate2, or why it does not support the model."""

    @abstractmethod
    def onnx(self) -> Conversion | str:
        """Return the conversion to ONNX, or why it does not support the model."""

    @abstractmethod
    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """Return the comparison on rows of predictions.tsv."""

    @cached_property
    def exported(self) -> Exported:
        """The exported model in PyTorch."""
        exported = open_bundle(self.paths.bundle, "cpu")
        assert isinstance(exported, self.kind)
        return exported

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """The validation rows to compare."""
        return _validation_rows(self.paths.predictions, self.params.convert.verify_rows)

    @cached_property
    def verification(self) -> Verification:
        """The exported model's reference answers."""
        return self.verified_with(self.rows)

    def conversion(
        self,
        vocabularies: dict[str, Vocabulary],
        positions: int,
        example: str,
        write: Callable[[Path, bool], None],
        **more: bool,
    ) -> Conversion:
        """Make a verified conversion; arguments as in `Conversion`. more: further arguments for opening."""
        return Conversion(sizes(vocabularies, positions) | more, example, write, self.verification.verify)
