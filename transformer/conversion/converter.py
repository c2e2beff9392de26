"""Base class of the families' converters: the exported model, its verification, and the run."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from transformer.checkpoint.device import prepare
from transformer.conversion.parts import sizes
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs, ConvertParams, convert_all
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.encoded.vocabulary import Vocabulary
from transformer.export.bundle import open_bundle


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

    def __init__(self, params: Params, inputs: ConvertInputs) -> None:
        self.params, self.inputs = params, inputs

    def run(self, outputs: ConvertOutputs, observer: Observer) -> dict[str, float]:
        """Write and verify the formats. Return their sizes."""
        prepare(self.params.hardware)
        return convert_all(
            self.params.convert, {"ctranslate2": self.ctranslate2, "onnx": self.onnx}, self.inputs, outputs, observer
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
        exported = open_bundle(self.inputs.bundle, "cpu")
        assert isinstance(exported, self.kind)
        return exported

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """The validation rows to compare."""
        return self.inputs.validation_rows(self.params.convert.verify_rows)

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
