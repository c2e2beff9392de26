"""Language models, causal and masked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformer.core.task import Combinations, CommandLine, Family, Reporting, StageCode, Task


class Language(Family):
    """Transformers that predict the next token, or hidden ones."""

    name = "language"
    headline = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy")
    question = "text"
    answers = (("string", "answer"), ("string", "notes"))
    commands = (
        ("fill", "fill the gaps of texts, one per line, where [MASK] stands"),
        ("generate", "continue texts, one per line"),
    )

    def download_stage(self) -> StageCode:
        from transformer.families.language.download import Params, run

        return StageCode(Params, run)

    def tokenize_stage(self) -> StageCode:
        from transformer.data.tokens import TextParams, tokenize_texts

        return StageCode(TextParams, tokenize_texts)

    def build_vocab_stage(self) -> StageCode:
        from transformer.families.language.build_vocab import Params, run

        return StageCode(Params, run)

    def train_stage(self) -> StageCode:
        from transformer.families.language.train import Params, run

        return StageCode(Params, run)

    def figures_stage(self) -> StageCode:
        from transformer.families.language.figures import Params, run

        return StageCode(Params, run)

    def evaluate_stage(self) -> StageCode:
        from transformer.families.language.evaluate import Params, run

        return StageCode(Params, run)

    def export_stage(self) -> StageCode:
        from transformer.families.language.export import Params, run

        return StageCode(Params, run)

    def convert_stage(self) -> StageCode:
        from transformer.families.language.convert import Params, run

        return StageCode(Params, run)

    def report_stage(self) -> StageCode:
        from transformer.reporting.page import ReportParams, write_report

        return StageCode(ReportParams, write_report)

    def combinations(self) -> Combinations:
        from transformer.families.language.combinations import Params, check

        return Combinations(Params, check)

    def command_line(self) -> CommandLine:
        from transformer.families.language.options import LanguageCommands

        return LanguageCommands()

    def reporting(self) -> Reporting:
        from transformer.families.language.report import LanguageReporting

        return LanguageReporting()

    def attention_drawings(self, model: Any, text: str, layers: str) -> list[Any]:
        from transformer.families.language.figures import drawings_of

        return drawings_of(model, text, layers=layers)

    def open_exported(self, task: Task, bundle: Path, decoding: dict[str, Any], device: str) -> Any:
        from transformer.families.language.torch_model import open_exported

        return open_exported(bundle, decoding, device)

    def open_converted(self, task: Task, folder: Path, config: dict[str, Any], threads: int | None) -> Any:
        from transformer.families.language.engines import open_converted

        return open_converted(folder, config, threads)

    def details(self, model: Any, network: Callable[[], Any], config: Mapping[str, Any], text: str) -> dict[str, Any]:
        from transformer.families.language.details import details

        return details(model, text)

    def best_engine(self, config: dict[str, Any], available: list[str]) -> str:
        return "torch"  # no other was measured to be faster


FAMILY = Language()
