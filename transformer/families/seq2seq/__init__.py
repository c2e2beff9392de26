"""Models that map one sequence to another: translation."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError
from transformer.core.task import Combinations, CommandLine, Family, Reporting, StageCode, Task

if TYPE_CHECKING:
    from transformer.families.seq2seq.decode import DecodingParams

_WIDEST = 100
"""Maximum number of hypotheses per request, for memory; a model with a larger default allows that many."""


class Seq2Seq(Family):
    """Encoder-decoder models, from Transformers to recurrent networks."""

    name = "seq2seq"
    headline = ("bleu", "chrf", "perplexity")
    question = "source"
    answers = (("string", "translation"), ("string", "notes"))
    commands = (("translate", "translate texts, one per line"),)

    def download_stage(self) -> StageCode:
        from transformer.families.seq2seq.download import Params, run

        return StageCode(Params, run)

    def tokenize_stage(self) -> StageCode:
        from transformer.families.seq2seq.tokenize import Params, run

        return StageCode(Params, run)

    def build_vocab_stage(self) -> StageCode:
        from transformer.families.seq2seq.build_vocab import Params, run

        return StageCode(Params, run)

    def train_stage(self) -> StageCode:
        from transformer.families.seq2seq.train import Params, run

        return StageCode(Params, run)

    def figures_stage(self) -> StageCode:
        from transformer.families.seq2seq.figures import Params, run

        return StageCode(Params, run)

    def evaluate_stage(self) -> StageCode:
        from transformer.families.seq2seq.evaluate import Params, run

        return StageCode(Params, run)

    def export_stage(self) -> StageCode:
        from transformer.families.seq2seq.export import Params, run

        return StageCode(Params, run)

    def convert_stage(self) -> StageCode:
        from transformer.families.seq2seq.convert import Params, run

        return StageCode(Params, run)

    def report_stage(self) -> StageCode:
        from transformer.reporting.page import ReportParams, write_report

        return StageCode(ReportParams, write_report)

    def combinations(self) -> Combinations:
        from transformer.families.seq2seq.combinations import Params, check

        return Combinations(Params, check)

    def command_line(self) -> CommandLine:
        from transformer.families.seq2seq.options import TranslationCommands

        return TranslationCommands()

    def reporting(self) -> Reporting:
        from transformer.families.seq2seq.report import TranslationReporting

        return TranslationReporting()

    def attention_drawings(self, model: Any, text: str, layers: str) -> list[Any]:
        from transformer.families.seq2seq.figures import drawings_of

        return drawings_of(model, text, layers=layers)

    def open_exported(self, task: Task, bundle: Path, decoding: dict[str, Any], device: str) -> Any:
        from transformer.families.seq2seq.torch_translator import open_exported

        return open_exported(bundle, decoding, device)

    def open_converted(self, task: Task, folder: Path, config: dict[str, Any], threads: int | None) -> Any:
        from transformer.families.seq2seq.engines import open_converted

        return open_converted(folder, config, threads)

    def best_engine(self, config: dict[str, Any], available: list[str]) -> str:
        from transformer.families.seq2seq.engines import best_engine

        return best_engine(config, available)

    def request_params(self, config: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
        decoding = config["decoding"]
        beam_size = {"beam": decoding["beam_size"], "greedy": 1, "sample": 0}[decoding["method"]]
        return (("long", "beam_size", beam_size), ("long", "n_best", decoding["n_best"]))

    def requested(self, config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """A beam of more than 1 means beam search."""
        changes: dict[str, Any] = {
            name: int(params[name])
            for _, name, default in self.request_params(config)
            if params.get(name) not in (None, default)
        }
        for name, number in changes.items():
            if number > (widest := max(_WIDEST, config["decoding"][name])):
                raise UserError(f"`{name}` is {number}, and a request can have at most {widest}")
        if "beam_size" in changes:
            beam = changes["beam_size"] > 1
            changes = {"method": "beam"} | changes if beam else {"method": "greedy", "n_best": 1} | changes
        decoding = config["decoding"] | changes
        return {**config, "decoding": _validated(decoding).model_dump() if changes else decoding}

    def details(self, model: Any, network: Callable[[], Any], config: Mapping[str, Any], text: str) -> dict[str, Any]:
        from transformer.families.seq2seq.details import details

        return details(model, network, _validated(config["decoding"]), text)

    def answer(self, model: Any, config: Mapping[str, Any], texts: Sequence[str]) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = model.table(texts, _validated(config["decoding"]))
        return table


def _validated(decoding: dict[str, Any]) -> "DecodingParams":
    from transformer.core.validation import validate
    from transformer.families.seq2seq.decode import DecodingParams

    return validate(DecodingParams, decoding, where="params", prefix="decoding")


FAMILY = Seq2Seq()
