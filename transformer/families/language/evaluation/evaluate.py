"""evaluate: scores the model's predictions of validation and test texts, with confidence intervals and samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from pydantic import Field

from transformer.checkpoint.device import prepare
from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.evaluation.baseline import Baseline
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs, ScoringParams, evaluated_splits
from transformer.evaluation.leakage import LeakageCheck
from transformer.families.language.data.windows import first_texts
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.scoring import Scored, score
from transformer.families.language.decoding.with_torch import TorchLanguageModel
from transformer.families.language.evaluation.samples import samples
from transformer.families.language.evaluation.scores import Texts, by_place, counted, of_rows, split_figures

COLUMNS = ("split", "text", "tokens", "log_probability", "right")
_PLACES = ("place", "tokens", "loss")
_MAIN = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy", "loss", "duplicates")
_SHOWN = 20  # texts per split in the table of the least expected ones


class EvaluateParams(AnswerParams, ScoringParams):
    """`evaluate`: how texts are continued and scored."""

    max_texts: int | None = Field(ge=1)
    """Texts of each split that are scored, from its first on; null for all."""


class Params(StageParams):
    """The stage's parameters."""

    evaluate: EvaluateParams
    hardware: Hardware


@dataclass(frozen=True)
class _Answers:
    """The texts of one split, and their scores."""

    texts: list[str]
    scored: Scored
    unknown: float
    """The share of unknown tokens."""

    @property
    def counts(self) -> Texts:
        return counted(self.texts, self.scored.texts)


def run(
    task: Task, params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write metrics per split, every text's score, and tables. Returns the main validation metrics."""
    baseline = _open_baseline(params.evaluate.baseline, inputs, outputs)
    compute = prepare(params.hardware)
    opened = inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device
    model, splits = TorchLanguageModel(*opened), evaluated_splits(inputs.corpus)
    answers = {split: _answered(split, model, params.evaluate, inputs, observer) for split in splits}
    leakage = LeakageCheck([row["text"] for row in read_rows(inputs.corpus / "train.jsonl")])
    figures: dict[str, dict[str, float]] = {}
    for split, given in answers.items():
        other = _other(baseline, split, given.texts, observer)
        found = leakage.check(split, given.texts, seen_from_now_on=split.startswith("validation"))
        figures[split] = (
            split_figures(given.counts, samples=params.evaluate.bootstrap_samples, baseline=other)
            | {task.units: len(given.texts), "unknown_rate": round(given.unknown, 6)}
            | found.figures()
        )
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in _main(figures[split]).items()))
    write_table(outputs.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(outputs.tables / "unexpected.tsv", ("split", "loss", "text"), _unexpected(answers))
    shown = [row for split, given in answers.items() for row in samples(split, given.texts, model)]
    write_table(outputs.tables / "samples.tsv", ("split", "given", "answer"), shown)
    write_table(
        outputs.plots / "loss_by_place.tsv",
        _PLACES,
        by_place(answers["test"].scored.nats, answers["test"].scored.counts),
    )
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, COLUMNS, _rows(answers))
    return _main(figures["validation"])


def _answered(
    split: str, model: TorchLanguageModel, params: EvaluateParams, inputs: EvaluationInputs, observer: Observer
) -> _Answers:
    sequences = first_texts(inputs.encoded / split, params.max_texts)
    texts = [row["text"] for row in islice(read_rows(inputs.corpus / f"{split}.jsonl"), len(sequences))]
    return _Answers(texts, score(model.engine, sequences, params, observer), _unknown(sequences, model.vocabulary))


def _unknown(sequences: list[Ids], vocabulary: Vocabulary) -> float:
    ids = np.concatenate([ids[1:-1] for ids in sequences])
    return float(np.isin(ids, vocabulary.unfamiliar_ids).mean()) if len(ids) else 0.0


def _open_baseline(name: str | None, inputs: EvaluationInputs, outputs: EvaluationOutputs) -> Baseline | None:
    if name is None:
        return None
    return Baseline.read(name, inputs.baselines, outputs.predictions, columns=("tokens", "log_probability", "right"))


def _other(baseline: Baseline | None, split: str, texts: list[str], observer: Observer) -> Texts | None:
    rows = None if baseline is None else baseline.of_split(split, texts, "text", observer)
    if rows is None or baseline is None:
        return None
    try:
        return of_rows(rows, texts)
    except ValueError as error:
        raise UserError(f"{baseline.name}: {error}: `tokens` and `right` must be whole numbers") from error


def _main(figures: Mapping[str, float]) -> dict[str, float]:
    """The metrics to report while the stage runs."""
    return {name: figures[name] for name in _MAIN if name in figures}


def _rows(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    for split, given in answers.items():
        for text, each in zip(given.texts, given.scored.texts, strict=True):
            yield split, text, each.tokens, each.log_probability, each.right


def _unexpected(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    """The texts of each split with the highest loss per token."""
    for split, given in answers.items():
        counts = given.counts
        losses = counts.nats / np.maximum(counts.tokens, 1)
        for row in np.argsort(-losses, kind="stable")[:_SHOWN].tolist():
            yield split, round(float(losses[row]), 4), given.texts[row]
