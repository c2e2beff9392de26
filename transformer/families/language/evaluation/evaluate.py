"""evaluate: scores the model's predictions of validation and test texts, with confidence intervals and samples."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from pydantic import Field

from transformer.checkpoint.device import prepare
from transformer.checkpoint.trained import WEIGHTS
from transformer.core.errors import UserError
from transformer.core.files import read_rows, sha256, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task
from transformer.encoded.batching import Ids
from transformer.encoded.store import EncodedColumn
from transformer.encoded.vocabulary import Vocabulary
from transformer.evaluation.baseline import Baseline
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs, ScoringParams, evaluated_splits
from transformer.evaluation.leakage import Duplicates, LeakageCheck
from transformer.families.language.data.windows import first_texts
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.interface import Engine
from transformer.families.language.decoding.scoring import Scored, score
from transformer.families.language.decoding.with_torch import TorchLanguageModel
from transformer.families.language.evaluation import detection_scores
from transformer.families.language.evaluation.detection import Detected, detect
from transformer.families.language.evaluation.samples import corruptions, samples
from transformer.families.language.evaluation.scores import (
    DIGITS,
    GENERATOR,
    METRICS,
    PER_TEXT,
    Texts,
    by_place,
    counted,
    of_rows,
    scores,
    split_figures,
)
from transformer.text.pretokenize import read_pretokenizers

COLUMNS = ("split", "text", "tokens", "log_probability", "right")
_PLACES = ("place", "tokens", "loss")
_ROC = ("own_judged_replaced", "replaced_found")
_MAIN = (
    *("perplexity", "word_perplexity", "bits_per_byte", "accuracy", "loss"),
    *("detection_auc", "detection_accuracy", "undetected_accuracy", "generator_perplexity", "duplicates"),
)
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
    detected: Detected | None
    """The discriminator's judgement, if there is one."""

    @property
    def counts(self) -> Texts:
        return counted(self.texts, self.scored.texts)

    def figures(
        self, params: ScoringParams, other: list[dict[str, str]] | None, compared: Container[str]
    ) -> dict[str, float]:
        """The scores of the model, or of its discriminator and its generator.

        other: the baseline's rows; compared: the metrics that it was measured by in the same way.
        """
        samples, texts = params.bootstrap_samples, None if other is None else of_rows(other, self.texts)
        if self.detected is None:
            return split_figures(self.counts, samples=samples, baseline=texts, compared=compared)
        counts = None if other is None else detection_scores.of_rows(other)
        given = self.detected.counts, self.detected.probabilities, self.detected.replaced
        found = detection_scores.detection_figures(*given, samples=samples, baseline=counts, compared=compared)
        return found | split_figures(self.counts, samples=samples, baseline=texts, compared=compared, prefix=GENERATOR)


def run(
    task: Task, params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write metrics per split, every text's score, and tables. Returns the main validation metrics."""
    compute = prepare(params.hardware)
    opened = inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device
    model, splits = TorchLanguageModel(*opened), evaluated_splits(inputs, "text")
    sequences = {split: first_texts(inputs.encoded / split, params.evaluate.max_texts) for split in splits}
    unknown = {split: _unknown(ids, model.vocabulary) for split, ids in sequences.items()}
    cut = any(len(ids) < len(EncodedColumn(inputs.encoded / split, "text")) for split, ids in sequences.items())
    familiar = not any(unknown.values())
    signatures = _signatures(model.engine, params.evaluate, inputs, familiar=familiar, cut=cut)
    baseline = _open_baseline(params.evaluate.baseline, inputs, outputs, signatures, detects=model.engine.detects)
    compared = {} if baseline is None else baseline.measured_alike(signatures)
    answers = {
        split: _answered(split, ids, unknown[split], model, params.evaluate, inputs, observer)
        for split, ids in sequences.items()
    }
    leakage = LeakageCheck([row["text"] for row in read_rows(inputs.corpus / "train.jsonl")])
    figures: dict[str, dict[str, float] | dict[str, str]] = {}
    for split, given in answers.items():
        found = leakage.check(split, given.texts, seen_from_now_on=split.startswith("validation"))
        own = (
            _figures(given, params.evaluate, baseline, compared, split, observer)
            | {task.units: len(given.texts), "unknown_rate": round(given.unknown, 6)}
            | found.figures()
            | _without(given, found)
        )
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in _main(own).items()))
        figures[split] = own
    figures["signatures"] = signatures
    write_table(outputs.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(outputs.tables / "unexpected.tsv", ("split", "loss", "text"), _unexpected(answers))
    shown = [row for split, given in answers.items() for row in samples(split, given.texts, model)]
    write_table(outputs.tables / "samples.tsv", ("split", "given", "answer"), shown)
    write_table(
        outputs.plots / "loss_by_place.tsv",
        _PLACES,
        by_place(answers["test"].scored.nats, answers["test"].scored.counts),
    )
    if (judged := answers["test"].detected) is not None:
        write_table(
            outputs.plots / "detection_roc.tsv", _ROC, detection_scores.roc(judged.probabilities, judged.replaced)
        )
        written = [row for split, given in answers.items() for row in corruptions(split, given.detected, model)]
        write_table(outputs.tables / "detections.tsv", ("split", "given", "replaced", "false_alarms"), written)
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, columns(detects=model.engine.detects), _rows(answers))
    return {name: float(figures["validation"][name]) for name in _MAIN if name in figures["validation"]}


def columns(*, detects: bool) -> tuple[str, ...]:
    """Of predictions.tsv."""
    return (*COLUMNS, *detection_scores.COLUMNS) if detects else COLUMNS


def _answered(
    split: str,
    sequences: list[Ids],
    unknown: float,
    model: TorchLanguageModel,
    params: EvaluateParams,
    inputs: EvaluationInputs,
    observer: Observer,
) -> _Answers:
    texts = [row["text"] for row in islice(read_rows(inputs.corpus / f"{split}.jsonl"), len(sequences))]
    return _Answers(
        texts,
        score(model.engine, sequences, params, observer),
        unknown,
        detect(model.engine, sequences, params, observer) if model.engine.detects else None,
    )


def _unknown(sequences: list[Ids], vocabulary: Vocabulary) -> float:
    ids = np.concatenate([ids[1:-1] for ids in sequences])
    return float(np.isin(ids, vocabulary.unfamiliar_ids).mean()) if len(ids) else 0.0


def _without(given: _Answers, duplicates: Duplicates) -> dict[str, float]:
    """The scores on the texts that no earlier split contains, if there are any."""
    new = ~duplicates.any
    if not new.any():
        return {}
    rest = scores(Texts(*(column[new] for column in given.counts)))
    found = {name: rest[name] for name in METRICS}
    if given.detected is not None:
        found = {f"{GENERATOR}{name}": value for name, value in found.items()}
        found |= detection_scores.scores(detection_scores.Counts(*(column[new] for column in given.detected.counts)))
    return {f"{name}_without_duplicates": round(value, DIGITS) for name, value in found.items()}


def _signatures(
    engine: Engine, params: EvaluateParams, inputs: EvaluationInputs, *, familiar: bool, cut: bool
) -> dict[str, str]:
    """How each metric was measured: two results compare only where this is the same.

    A discriminator's depend on what its generator wrote, which no other model's does.

    familiar: whether the vocabulary knows all of the texts. If so, the metrics per word and per byte of a causal model
    do not depend on it; where one of some tokens is hidden, the others show the more of its word the smaller they are.
    cut: whether a split has more texts than are scored.
    """
    split = read_pretokenizers(inputs.tokens, "text")["text"]
    how = {
        "objective": "causal" if engine.causal else "replaced" if engine.detects else "masked",
        **({} if engine.causal else {"apart": params.apart}),
        "stride": params.stride or "none",
        # Older results predicted every token at the right end of its window.
        **({"predicted": "centrally"} if params.stride and not engine.causal else {}),
        "texts": params.max_texts if cut else "all",
        **{"split": split.kind, "lowercase": split.lowercase, "breaks": split.html_breaks},
    }
    measured = "|".join(f"{name}:{value}" for name, value in how.items())
    per_token = f"{measured}|vocabulary:{sha256(inputs.vocab / 'text' / 'tokenizer.json')[:12]}"
    own = (*detection_scores.METRICS, "detection_auc", "undetected_accuracy") if engine.detects else ()
    prefix = GENERATOR if engine.detects else ""
    generated = f"{per_token}|generator:{sha256(inputs.trained / WEIGHTS)[:12]}" if own else ""
    return dict.fromkeys(own, generated) | {
        f"{prefix}{name}": measured if familiar and engine.causal and name in PER_TEXT else per_token
        for name in METRICS
    }


def _open_baseline(
    name: str | None,
    inputs: EvaluationInputs,
    outputs: EvaluationOutputs,
    signatures: Mapping[str, str],
    *,
    detects: bool,
) -> Baseline | None:
    if name is None:
        return None
    needed = [column for column in columns(detects=detects) if column not in ("split", "text")]
    found = Baseline.read(name, inputs.baselines, outputs.predictions, columns=needed)
    if not detects and any(detection_scores.COLUMNS[0] in row for rows in found.rows.values() for row in rows[:1]):
        raise UserError(
            f"{found.name} has the scores of a generator (model.objective `replaced`), which are not comparable: name"
            " another in `evaluate.baseline`, or null for none"
        )
    if not found.measured_alike(signatures):
        name, theirs = next((name, theirs) for name, theirs in found.signatures.items() if name in signatures)
        raise UserError(
            f"{found.name} was measured otherwise (`{theirs}`, here `{signatures[name]}`): name another in"
            " `evaluate.baseline`, or null for none"
        )
    return found


def _figures(
    given: _Answers,
    params: ScoringParams,
    baseline: Baseline | None,
    compared: Container[str],
    split: str,
    observer: Observer,
) -> dict[str, float]:
    rows = None if baseline is None else baseline.of_split(split, {"text": given.texts}, observer)
    try:
        return given.figures(params, rows, compared)
    except ValueError as error:
        if baseline is None:
            raise
        raise UserError(f"{baseline.name}: {error}: `tokens` and `right` must be whole numbers") from error


def _main(figures: Mapping[str, float]) -> dict[str, float]:
    """The metrics to report while the stage runs."""
    return {name: figures[name] for name in _MAIN if name in figures}


def _rows(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    for split, given in answers.items():
        counts = (
            () if given.detected is None else [column.astype(np.int64).tolist() for column in given.detected.counts]
        )
        for row, (text, each) in enumerate(zip(given.texts, given.scored.texts, strict=True)):
            yield split, text, each.tokens, each.log_probability, each.right, *(column[row] for column in counts)


def _unexpected(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    """The texts of each split with the highest loss per token."""
    for split, given in answers.items():
        counts = given.counts
        losses = counts.nats / np.maximum(counts.tokens, 1)
        for row in np.argsort(-losses, kind="stable")[:_SHOWN].tolist():
            yield split, round(float(losses[row]), 4), given.texts[row]
