"""evaluate: scores translations of validation and every test split, with intervals and the worst sentences."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from pydantic import model_validator
from tokenizers.models import WordPiece

from transformer.core.files import read_rows, sha256, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Hardware, StageParams
from transformer.data.leakage import LeakageCheck
from transformer.data.workers import OrderedMap, worker_processes
from transformer.evaluation.baseline import (
    Baseline,
    ScoringParams,
    evaluated_splits,
)
from transformer.families.seq2seq.decode import DecodingParams, Search, search_batch
from transformer.families.seq2seq.metrics import (
    Group,
    Texts,
    groups,
    judged,
    of_tokens,
    split_figures,
    word_counts,
    worst_and_median,
)
from transformer.families.seq2seq.pairs import EncodedPairs, Pairs, Predicted, perplexity, predicted
from transformer.families.seq2seq.scores import GIVEN, Metric, text_metrics
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.inference.heads import HeadParams, Measured, write_head_costs
from transformer.inference.search import Hypothesis, Sources
from transformer.nn.device import prepare, with_own_cores

_opened: list[TorchTranslator] = []
"""The model opened in this process."""


def open_translator(paths: Paths, decoding: DecodingParams, hardware: Hardware) -> None:
    """Open the trained model in this process. Raises UserError if a file is missing or broken."""
    device = prepare(hardware).device
    _opened[:] = [TorchTranslator(paths.trained, paths.vocab, paths.tokens, decoding, device)]


def opened_translator() -> TorchTranslator:
    """Return the model opened by `open_translator`."""
    return _opened[0]


def search_with(
    ordered_map: OrderedMap, batches: Iterable[Sources], params: DecodingParams
) -> Iterator[list[list[Hypothesis]]]:
    """Yield the hypotheses of each batch, in order, searched in processes that called `open_translator`."""
    return ordered_map(partial(_search, params), batches)


def score_with(ordered_map: OrderedMap, batches: Iterable[Pairs]) -> Iterator[Predicted]:
    """Yield the metrics of each batch, in order, computed in processes that called `open_translator`."""
    return ordered_map(_predicted, batches)


def _predicted(pairs: Pairs) -> Predicted:
    model = opened_translator().model
    with torch.inference_mode():
        return predicted(model, next(model.parameters()).device, pairs)


def _search(params: DecodingParams, batch: Sources) -> list[list[Hypothesis]]:
    translator = opened_translator()
    return search_batch(translator.generator, batch, translator.vocabularies["target"], params)


COLUMNS = ("split", "source", "reference", "hypothesis")
_SENTENCES = ("split", "kind", "chrf", "source", "reference", "hypothesis")
_PLOTS = {
    "source_length": "bleu_by_length.tsv",
    "rare_words": "bleu_by_rare_words.tsv",
    "unknown_words": "bleu_by_unknown_words.tsv",
}
_JOINS = 95.0
"""BLEU from which joined tokens count as the original text, up to spelling variants of the corpus."""
_SHOWN = 20  # sentences per split and kind in the table
_MAIN = ("bleu", "bleu_low", "bleu_high", "chrf", "perplexity", "length_ratio", "duplicates")


class EvaluateParams(DecodingParams, ScoringParams, HeadParams):
    """`evaluate`: how translations are generated and scored."""

    @model_validator(mode="after")
    def _chooses_from_a_beam(self) -> Self:
        if self.mbr_utility != "none" and not self.reranks:
            raise ValueError(f"mbr_utility `{self.mbr_utility}` needs method `beam` and a beam_size above 1: set them")
        return self


class Params(StageParams):
    """The stage's parameters."""

    evaluate: EvaluateParams
    hardware: Hardware


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write metrics per split, all translations, and tables. Returns the main validation metrics."""
    name = params.evaluate.baseline
    baseline = (
        Baseline.read(name, paths.baselines, paths.predictions, committed=paths.committed, columns=("hypothesis",))
        if name
        else None
    )
    opened = paths, params.evaluate, params.hardware
    runtime = with_own_cores(params.runtime, params.hardware.threads)
    with worker_processes(runtime, initializer=open_translator, arguments=opened) as ordered_map:
        translator = opened_translator()
        if runtime.workers:
            search = partial(search_with, ordered_map)
            source, target = translator.vocabularies["source"], translator.vocabularies["target"]
            translator.decoder = Search(translator.generator, source, target, search)
        return _evaluated(params, translator, ordered_map, baseline, paths, observer)


def _evaluated(
    params: Params,
    translator: TorchTranslator,
    ordered_map: OrderedMap,
    baseline: Baseline | None,
    paths: Paths,
    observer: Observer,
) -> dict[str, float]:
    train = _column(paths.corpus, "train", translator, "source")
    leakage, counts = LeakageCheck(train), word_counts(train)
    figures: dict[str, dict[str, float] | dict[str, str]] = {}
    tables = _Tables(counts, params.evaluate.bootstrap_samples)
    target = translator.pretokenizers["target"]
    # Perplexity per token depends on the vocabulary, on pre-tokenization and on truncation.
    per_token = f"vocabulary:{sha256(paths.vocab / 'target' / 'tokenizer.json')[:12]}"
    per_token += f"|split:{target.kind}|lowercase:{target.lowercase}"
    for split in evaluated_splits(paths, "source"):
        pairs = EncodedPairs(paths.encoded / split, translator.model.config)
        pairs.report(observer)
        found = translator.best_of_each([pairs.source[row] for row in range(len(pairs))], observer)
        texts = _translated(split, [translator.line(each) for each in found], translator, paths, observer)
        metrics = texts.metrics()
        expected = {"source": texts.sources, "reference": texts.references}
        given = baseline.of_split(split, expected, observer) if baseline else None
        own = split_figures(
            texts,
            metrics,
            duplicates=leakage.check(split, texts.sources, seen_from_now_on=split.startswith("validation")),
            baseline=[row["hypothesis"] for row in given] if given else None,
            samples=params.evaluate.bootstrap_samples,
        ) | _perplexities(pairs, texts, params.evaluate.batch_size, ordered_map)
        own |= (
            {"unknown_rate": _unknown_rate(pairs, translator)}
            | _unread(pairs, translator, found)
            | _attainable(split, texts, translator, paths, observer)
        )
        observer.say(f"{split}: " + "  ".join(f"{name} {own[name]:g}" for name in _MAIN if name in own))
        figures[split] = own
        if pairs.truncated and "cut" not in per_token:
            per_token += f"|cut:{translator.model.config.model.max_length}"
        figures["signatures"] = {name: metric.signature for name, metric in metrics.items()} | {"perplexity": per_token}
        tables.add(split, texts, metrics)
    tables.write(paths)
    write_table(paths.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_json(paths.evaluation, figures)
    if params.evaluate.head_texts:
        write_head_costs(paths.tables, translator.model, _greedy_bleu(params, translator, paths), observer)
    return {name: float(figures["validation"][name]) for name in _MAIN if name in figures["validation"]}


def _greedy_bleu(params: Params, translator: TorchTranslator, paths: Paths) -> Callable[[], Measured]:
    """Return a function that scores greedy translations of the first validation sentences, by -BLEU on text."""
    pairs = EncodedPairs(paths.encoded / "validation", translator.model.config)
    count = min(params.evaluate.head_texts, len(pairs))
    sources = [pairs.source[row] for row in range(count)]
    references = _column(paths.corpus, "validation", translator, "target")[:count]
    target = translator.pretokenizers["target"]
    decoding = params.evaluate.model_copy(update={"method": "greedy", "n_best": 1})
    search = Search(translator.generator, translator.vocabularies["source"], translator.vocabularies["target"])

    def measure() -> Measured:
        found = search(sources, decoding, Observer(), None)
        texts = [translator.text(translator.line(best)) for best, *_ in found]
        metrics = text_metrics(texts, references, cased=not target.lowercase, language=target.language)
        bleu = next(metric for name, metric in metrics.items() if name.startswith("bleu"))
        return -bleu.score(), -bleu.resampled(params.evaluate.bootstrap_samples)

    return measure


def _column(corpus: Path, split: str, translator: TorchTranslator, side: str) -> list[str]:
    """Return one side of a split as raw text."""
    language = str(translator.pretokenizers[side].language)
    return [row[language] for row in read_rows(corpus / f"{split}.jsonl")]


def _translated(split: str, decoded: list[str], translator: TorchTranslator, paths: Paths, observer: Observer) -> Texts:
    hypotheses = [translator.text(text) for text in decoded]
    references = _column(paths.corpus, split, translator, "target")
    target = translator.pretokenizers["target"]
    # WordPiece does not restore the tokens: it joins punctuation to words, and splits at hyphens.
    pieces = isinstance(translator.vocabularies["target"].tokenizer.model, WordPiece)
    if target.kind == "spacy" and not pieces:
        tokens = of_tokens(decoded, [row["target"] for row in read_rows(paths.tokens / f"{split}.jsonl")])
    else:
        tokens = judged(target.language, hypotheses, references)
    if tokens.tokenizer != GIVEN:
        observer.say(f"{split}: spaCy has no tokenizer for `{target.language}`, so BLEU uses `{tokens.tokenizer}`")
    return Texts(
        sources=_column(paths.corpus, split, translator, "source"),
        references=references,
        hypotheses=hypotheses,
        reference_tokens=tokens.references,
        hypothesis_tokens=tokens.hypotheses,
        cased=not target.lowercase,
        tokenizer=tokens.tokenizer,
        language=target.language,
    )


def _perplexities(pairs: EncodedPairs, texts: Texts, batch_size: int, ordered_map: OrderedMap) -> dict[str, float]:
    """Return perplexity per token, and per reference word or sentence end, which is comparable across vocabularies."""
    loss, _ = pairs.score(batch_size, partial(score_with, ordered_map))
    words = max(predicted_words(pairs, texts.reference_tokens), 1.0)
    return {
        "perplexity": _five_digits(perplexity(loss)),
        "word_perplexity": _five_digits(perplexity(loss * pairs.predicted / words)),
    }


def _unknown_rate(pairs: EncodedPairs, translator: TorchTranslator) -> float:
    """Return the fraction of unknown tokens in the references: they are easy to predict and deflate perplexity."""
    unknown = translator.vocabularies["target"].unknown_id
    counts = [(len(ids), int((ids == unknown).sum())) for row in range(len(pairs)) for ids in [pairs.target[row][1:-1]]]
    return round(sum(found for _, found in counts) / max(sum(length for length, _ in counts), 1), 6)


def _unread(pairs: EncodedPairs, translator: TorchTranslator, found: Sequence[Hypothesis]) -> dict[str, float]:
    """Return the shares of sources that were cut or split, of translations that reached their maximum length, and of
    unknown tokens among those of the sources; without those that are 0.
    """
    sources, unknown = (
        [pairs.source[row][1:-1] for row in range(len(pairs))],
        translator.vocabularies["source"].unknown_id,
    )
    tokens = np.concatenate([np.zeros(0, dtype=np.int64), *sources])
    long = sum(len(source) > translator.decoder.positions - 2 for source in sources)
    shares = {
        "truncated_rate" if translator.decoding.long_sources == "cut" else "split_rate": long / max(len(pairs), 1),
        "unfinished_rate": sum(not each.finished for each in found) / max(len(pairs), 1),
        "source_unknown_rate": int((tokens == unknown).sum()) / max(len(tokens), 1),
    }
    return {name: round(share, 6) for name, share in shares.items() if share}


def _attainable(
    split: str, texts: Texts, translator: TorchTranslator, paths: Paths, observer: Observer
) -> dict[str, float]:
    """Return the BLEU on plain text of the detokenized reference tokens, with a warning, if it is low; else nothing.

    spaCy's tokens are joined by the rules of German and English, whatever the language.
    """
    if translator.pretokenizers["target"].kind != "spacy" or not texts.references:
        return {}
    joined = [translator.text(row["target"]) for row in read_rows(paths.tokens / f"{split}.jsonl")]
    metrics = text_metrics(joined, texts.references, cased=texts.cased, language=texts.language)
    bleu = next(metric.score() for name, metric in metrics.items() if name.startswith("bleu"))
    if bleu >= _JOINS:
        return {}
    observer.say(
        f"{split}: warning: a perfect translation would have {bleu:.1f} BLEU on plain text, since tokens are joined as"
        " German and English are written: set `tokenize.kind` to `none`, with a subword vocabulary, or trust chrF"
    )
    return {"attainable_bleu": bleu}


def predicted_words(pairs: EncodedPairs, references: Sequence[str]) -> float:
    """Count words and sentence ends of the references (N,); a truncated one counts by its fraction of tokens left."""
    shares = (pairs.lengths[:, 1] - 1) / (pairs.target.lengths - 1)
    counts = np.array([len(tokens.split()) + 1 for tokens in references], dtype=np.int64)
    return float(counts @ shares)


def _five_digits(value: float) -> float:
    """Round to five significant digits; further ones depend on the batch size (summation order)."""
    return float(f"{value:.5g}")


class _Tables:
    """The rows of all tables, split by split."""

    def __init__(self, counts: Counter[str], samples: int) -> None:
        """counts: word counts of the training sources; samples: of the bootstrap."""
        self._counts, self._samples = counts, samples
        self._translations: list[tuple[str, ...]] = []
        self._sentences: list[tuple[object, ...]] = []
        self._groups: list[tuple[str, Group]] = []

    def add(self, split: str, texts: Texts, metrics: dict[str, Metric]) -> None:
        """Add the rows of one split."""
        rows = list(zip(texts.sources, texts.references, texts.hypotheses, strict=True))
        self._translations += [(split, *row) for row in rows]
        scores = metrics["chrf"].sentence_scores()
        for kind, number in worst_and_median(scores, _SHOWN):
            self._sentences.append((split, kind, scores[number], *rows[number]))
        self._groups += [(split, group) for group in groups(texts.sources, self._counts, metrics, self._samples)]

    def write(self, paths: Paths) -> None:
        """Write all tables; DVC's plots show the split `test`."""
        write_table(paths.predictions, COLUMNS, self._translations)
        write_table(paths.tables / "sentences.tsv", _SENTENCES, self._sentences)
        write_table(paths.tables / "groups.tsv", ("split", *Group._fields), ((s, *g) for s, g in self._groups))
        for grouping, name in _PLOTS.items():
            write_table(paths.plots / name, (grouping, *Group._fields[2:]), self._of_test(grouping))

    def _of_test(self, grouping: str) -> Iterator[tuple[object, ...]]:
        return (group[1:] for split, group in self._groups if split == "test" and group.grouping == grouping)
