"""Models that choose one label for a text: sentiment."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformer.core.task import Combinations, CommandLine, Family, Reporting, StageCode, Task


class TextClassifier(Family):
    """Encoders with pooling, recurrent networks, and models of n-grams."""

    name = "classifier"
    headline = ("accuracy", "f1", "macro_f1", "roc_auc")
    question = "text"
    answers = (("string", "label"), ("double", "probability"), ("string", "notes"))
    commands = (("classify", "classify texts, one per line: prints label, probability and text"),)

    def download_stage(self) -> StageCode:
        from transformer.families.classifier.download import Params, run

        return StageCode(Params, run)

    def tokenize_stage(self) -> StageCode:
        from transformer.data.tokens import TextParams, tokenize_texts

        return StageCode(TextParams, tokenize_texts)

    def build_vocab_stage(self) -> StageCode:
        from transformer.families.classifier.build_vocab import Params, run

        return StageCode(Params, run)

    def train_stage(self) -> StageCode:
        from transformer.families.classifier.train import Params, run

        return StageCode(Params, run)

    def figures_stage(self) -> StageCode:
        from transformer.families.classifier.figures import Params, run

        return StageCode(Params, run)

    def evaluate_stage(self) -> StageCode:
        from transformer.families.classifier.evaluate import Params, run

        return StageCode(Params, run)

    def export_stage(self) -> StageCode:
        from transformer.families.classifier.export import Params, run

        return StageCode(Params, run)

    def convert_stage(self) -> StageCode:
        from transformer.families.classifier.convert import Params, run

        return StageCode(Params, run)

    def report_stage(self) -> StageCode:
        from transformer.reporting.page import ReportParams, write_report

        return StageCode(ReportParams, write_report)

    def combinations(self) -> Combinations:
        from transformer.families.classifier.combinations import Params, check

        return Combinations(Params, check)

    def command_line(self) -> CommandLine:
        from transformer.families.classifier.options import ClassifierCommands

        return ClassifierCommands()

    def reporting(self) -> Reporting:
        from transformer.families.classifier.report import ClassifierReporting

        return ClassifierReporting()

    def attention_drawings(self, model: Any, text: str, layers: str) -> list[Any]:
        from transformer.families.classifier.figures import drawings_of

        return drawings_of(model, text, layers=layers)

    def open_exported(self, task: Task, bundle: Path, decoding: dict[str, Any], device: str) -> Any:
        from transformer.families.classifier.torch_classifier import open_exported

        return open_exported(task, bundle, decoding, device)

    def open_converted(self, task: Task, folder: Path, config: dict[str, Any], threads: int | None) -> Any:
        from transformer.families.classifier.engines import open_converted

        return open_converted(task, folder, config, threads)

    def details(self, model: Any, network: Callable[[], Any], config: Mapping[str, Any], text: str) -> dict[str, Any]:
        from transformer.families.classifier.details import details

        return details(model, text)

    def best_engine(self, config: dict[str, Any], available: list[str]) -> str:
        from transformer.families.classifier.engines import best_engine

        return best_engine(config, available)


FAMILY = TextClassifier()
