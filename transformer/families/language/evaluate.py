"""evaluate: scores validation and test texts, with confidence intervals and samples."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.files import read_rows, sha256, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Hardware, StageParams
from transformer.data.leakage import Duplicates, LeakageCheck
from transformer.data.store import EncodedColumn, Ids
from transformer.data.text import written_words
from transformer.data.tokenization import read_pretokenizers
from transformer.data.vocabulary import Vocabulary
from transformer.evaluation.baseline import (
    Baseline,
    ScoringParams,
    evaluated_splits,
)
from transformer.evaluation.bootstrap import bootstrap
from transformer.families.language.interface import MASK
from transformer.families.language.model import LanguageModel
from transformer.families.language.scores import (
    DIGITS,
    METRICS,
    PER_TEXT,
    Texts,
    by_place,
    counted,
    of_rows,
    scores,
    split_figures,
)
from transformer.families.language.scoring import AnswerParams, Engine, Scored, score
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.families.language.windows import first_texts
from transformer.inference.heads import HeadParams, Measured, write_head_costs
from transformer.nn.device import prepare

_TEXTS = 10  # per split
_PROMPT, _WORDS = 6, 30  # words per text
_GUESSES = 3


def samples(split: str, texts: Sequence[str], model: LanguageModel) -> Iterator[tuple[str, str, str]]:
    """Yield rows of split, model input and output: a continuation, or the most probable words for a gap."""
    written = [(words[:_WORDS], space) for words, space in map(written_words, texts[:_TEXTS])]
    if model.engine.causal:
        prompts = [space.join(words[:_PROMPT]) for words, space in written]
        for prompt, found in zip(prompts, model.generate_n_best(prompts), strict=True):
            yield split, prompt, found[0]
        return
    for words, space in written:
        place = len(words) // 2
        given = space.join([*words[:place], MASK, *words[place + 1 :]])
        guesses = model.fill(given, _GUESSES)
        yield split, given, ", ".join(f"{' '.join(found.words)} {found.probability:.2f}" for found in guesses)


COLUMNS = ("split", "text", "tokens", "log_probability", "right")
_MAIN = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy", "loss", "duplicates")
"""Metrics to report while the stage runs."""
_PLACES = ("place", "tokens", "loss", "low", "high")
_SHOWN = 20  # texts per split in the table of highest losses


class EvaluateParams(AnswerParams, ScoringParams, HeadParams):
    """`evaluate`: how texts are continued and scored."""

    max_texts: int | None = Field(ge=1)
    """Maximum number of texts to score per split, from its start; null for all."""


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
    """Fraction of unknown tokens."""

    @property
    def counts(self) -> Texts:
        return counted(self.texts, self.scored.texts)

    def figures(
        self, params: ScoringParams, other: list[dict[str, str]] | None, compared: Container[str]
    ) -> dict[str, float]:
        """Return all metrics. other: the baseline's rows; compared: metrics measured the same way for both."""
        theirs = None if other is None else of_rows(other, self.texts)
        return split_figures(self.counts, samples=params.bootstrap_samples, baseline=theirs, compared=compared)


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write metrics per split, each text's score, and tables. Returns the main validation metrics."""
    compute = prepare(params.hardware)
    opened = paths.trained, paths.vocab, paths.tokens, params.evaluate, compute.device
    model, splits = TorchLanguageModel(*opened), evaluated_splits(paths, "text")
    sequences = {split: first_texts(paths.encoded / split, params.evaluate.max_texts) for split in splits}
    unknown = {split: _unknown(ids, model.vocabulary) for split, ids in sequences.items()}
    cut = any(len(ids) < len(EncodedColumn(paths.encoded / split, "text")) for split, ids in sequences.items())
    familiar = not any(unknown.values())
    signatures = _signatures(model.engine, params.evaluate, paths, familiar=familiar, cut=cut)
    baseline = _open_baseline(params.evaluate.baseline, paths, signatures)
    compared = {} if baseline is None else baseline.measured_alike(signatures)
    answers = {
        split: _answered(split, ids, unknown[split], model, params.evaluate, paths, observer)
        for split, ids in sequences.items()
    }
    leakage = LeakageCheck([row["text"] for row in read_rows(paths.corpus / "train.jsonl")])
    figures: dict[str, dict[str, float] | dict[str, str]] = {}
    for split, given in answers.items():
        found = leakage.check(split, given.texts, seen_from_now_on=split.startswith("validation"))
        own = (
            _figures(given, params.evaluate, baseline, compared, split, observer)
            | {task.units: len(given.texts), "unknown_rate": round(given.unknown, 6)}
            | found.figures()
            | _without(given, found)
        )
        observer.say(f"{split}: " + "  ".join(f"{name} {own[name]:g}" for name in _MAIN))
        figures[split] = own
    figures["signatures"] = signatures
    write_table(paths.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(paths.tables / "unexpected.tsv", ("split", "loss", "text"), _unexpected(answers))
    shown = [row for split, given in answers.items() for row in samples(split, given.texts, model)]
    write_table(paths.tables / "samples.tsv", ("split", "given", "answer"), shown)
    scored = answers["test"].scored
    write_table(paths.plots / "loss_by_place.tsv", _PLACES, by_place(scored.nats, scored.counts, scored.squares))
    write_json(paths.evaluation, figures)
    if params.evaluate.head_texts:
        first = sequences["validation"][: params.evaluate.head_texts]
        write_head_costs(paths.tables, model.model, partial(_loss, model, first, params.evaluate), observer)
    write_table(paths.predictions, COLUMNS, _rows(answers))
    return {name: float(figures["validation"][name]) for name in _MAIN}


def _loss(model: TorchLanguageModel, sequences: Sequence[Ids], params: EvaluateParams) -> Measured:
    """Return the loss per token."""
    found = score(model.engine, sequences, params, Observer()).texts
    nats, tokens = (
        np.array(each) for each in zip(*((-each.log_probability, each.tokens) for each in found), strict=True)
    )
    drawn = bootstrap(lambda weights: weights @ nats / (weights @ tokens), len(found), params.bootstrap_samples)
    return float(nats.sum() / tokens.sum()), drawn


def _answered(
    split: str,
    sequences: list[Ids],
    unknown: float,
    model: TorchLanguageModel,
    params: EvaluateParams,
    paths: Paths,
    observer: Observer,
) -> _Answers:
    texts = [row["text"] for row in islice(read_rows(paths.corpus / f"{split}.jsonl"), len(sequences))]
    return _Answers(texts, score(model.engine, sequences, params, observer), unknown)


def _unknown(sequences: list[Ids], vocabulary: Vocabulary) -> float:
    ids = np.concatenate([ids[1:-1] for ids in sequences])
    return float(np.isin(ids, vocabulary.unfamiliar_ids).mean()) if len(ids) else 0.0


def _without(given: _Answers, duplicates: Duplicates) -> dict[str, float]:
    """Return the metrics on the texts not in an earlier split; empty if there are none."""
    new = ~duplicates.any
    if not new.any():
        return {}
    rest = scores(Texts(*(column[new] for column in given.counts)))
    return {f"{name}_without_duplicates": round(rest[name], DIGITS) for name in METRICS}


def _signatures(engine: Engine, params: EvaluateParams, paths: Paths, *, familiar: bool, cut: bool) -> dict[str, str]:
    """Return how each metric was measured; results are comparable only if this is equal.

    familiar: True if the vocabulary covers all texts. Then a causal model's metrics per word and per byte do not depend
    on the vocabulary; with a masked model they do, since the visible pieces reveal more of a word the smaller they are.
    cut: True if a split has more texts than are scored.
    """
    split = read_pretokenizers(paths.tokens, "text")["text"]
    how = {
        "objective": "causal" if engine.causal else "masked",
        **({} if engine.causal else {"mask_stride": params.mask_stride}),
        "stride": params.stride or "none",
        "texts": params.max_texts if cut else "all",
        **{"split": split.kind, "lowercase": split.lowercase, "breaks": split.html_breaks},
    }
    measured = "|".join(f"{name}:{value}" for name, value in how.items())
    per_token = f"{measured}|vocabulary:{sha256(paths.vocab / 'text' / 'tokenizer.json')[:12]}"
    return {name: measured if familiar and engine.causal and name in PER_TEXT else per_token for name in METRICS}


def _open_baseline(name: str | None, paths: Paths, signatures: Mapping[str, str]) -> Baseline | None:
    if name is None:
        return None
    needed = [column for column in COLUMNS if column not in ("split", "text")]
    found = Baseline.read(name, paths.baselines, paths.predictions, committed=paths.committed, columns=needed)
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


def _rows(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    for split, given in answers.items():
        for text, each in zip(given.texts, given.scored.texts, strict=True):
            yield split, text, each.tokens, each.log_probability, each.right


def _unexpected(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    """Yield the texts of each split with the highest loss per token."""
    for split, given in answers.items():
        counts = given.counts
        losses = counts.nats / np.maximum(counts.tokens, 1)
        for row in np.argsort(-losses, kind="stable")[:_SHOWN].tolist():
            yield split, round(float(losses[row]), 4), given.texts[row]
