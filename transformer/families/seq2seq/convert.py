"""convert: converts the exported translation model to CTranslate2 and ONNX, and verifies both on validation pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import INT8, Task
from transformer.data.store import Ids, padded, sorted_batches
from transformer.data.tokenization import open_pretokenizer
from transformer.data.vocabulary import clip
from transformer.families.seq2seq.decode import DecodingParams, Search
from transformer.families.seq2seq.formats import (
    ctranslate2_example,
    onnx_example,
    onnx_graphs,
    write_ctranslate2,
    write_onnx,
)
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.scores import Metric, text_metrics
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.families.seq2seq.translator import Translator
from transformer.inference.bundle import CONFIG, open_bundle
from transformer.inference.conversion import (
    TIE,
    Conversion,
    Converter,
    Params,
    require_close,
    require_quality,
)
from transformer.inference.search import Generator
from transformer.nn.evolved import EvolvedEncoder

_BATCH = 64
_SAMPLES = 1000
_FRAME = 2  # begin and end token


class _Answers(NamedTuple):
    ids: list[list[int]]
    texts: list[str]


class Verification:
    """The exported model's translations, to compare converted models against."""

    def __init__(self, bundle: Path, exported: TorchTranslator, rows: Sequence[dict[str, str]], threads: int) -> None:
        """bundle: the folder of `exported`; rows: of predictions.tsv. Sources without tokens are skipped.

        For these, CTranslate2 returns nothing and other engines an arbitrary text.
        """
        encoded = exported.vocabularies["source"].encode(exported.pretokenize([row["source"] for row in rows]))
        rows = [row for row, ids in zip(rows, encoded, strict=True) if len(ids) > _FRAME]
        self._whole = [ids for ids in encoded if len(ids) > _FRAME]
        self._exported, self._rows, self._threads = exported, rows, threads
        self._greedy = exported.decoding.model_copy(
            update={"method": "greedy", "n_best": 1, "no_repeat_ngram": None, "long_sources": "cut"}
        )
        positions = exported.generator.positions
        target = exported.vocabularies["target"]
        references = open_pretokenizer(bundle, exported.pretokenizers["target"])([row["reference"] for row in rows])
        self.sources = [clip(ids, positions) for ids in self._whole]
        self.targets = [clip(ids, positions) for ids in target.encode(references)]
        self._forced = forced(exported.generator, self.sources, self.targets)
        self._answers = self._answered(exported, self._greedy, self.sources)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than rounding (summation order)."""
        engine = read_json(folder / CONFIG)["engine"]
        converted = open_bundle(folder, threads=self._threads)
        assert isinstance(converted, Translator)
        found = _forced_by(converted, self.sources, self.targets)
        differences = [
            abs(own - theirs)
            for row, others in zip(found, self._forced, strict=True)
            for own, theirs in zip(row, others, strict=True)
        ]
        figures: dict[str, float] = {"rows": len(self._rows)}
        figures |= require_close(engine, differences, "log probability of a token")
        answers = self._answered(converted, self._greedy, self.sources)
        figures |= self._equal(engine, answers)
        own, exported = self._scored(answers), self._scored(self._answers)
        name, samples = next(iter(own)), _SAMPLES if engine.endswith(INT8) else 0
        lead = own[name].resampled(samples) - exported[name].resampled(samples)
        figures |= require_quality(engine, name, own[name].score(), exported[name].score(), lead)
        return figures | self._as_evaluated(converted)

    def _equal(self, engine: str, answers: _Answers) -> dict[str, float]:
        """Count translations equal to the exported model's. Raises UserError if float32 differs except by ties."""
        ties = different = 0
        for number, (own, theirs) in enumerate(zip(answers.ids, self._answers.ids, strict=True)):
            if own == theirs:
                continue
            different += 1
            if engine.endswith(INT8):
                continue
            if not self._is_tie(number, own, theirs):
                raise UserError(
                    f"{engine} translates {self._rows[number]['source'][:80]!r} as {answers.texts[number][:80]!r}, and"
                    f" the exported model as {self._answers.texts[number][:80]!r}: not written; leave this format out"
                    " of convert.formats"
                )
            ties += 1
        return {"equal": len(self._rows) - different, "ties": ties}

    def _is_tie(self, number: int, own: list[int], theirs: list[int]) -> bool:
        """True if the first differing tokens are equally probable under the exported model."""
        end = self._exported.vocabularies["target"].end_id
        one, two = [*own, end], [*theirs, end]
        place = next((i for i, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]), None)
        if place is None:
            return False
        begin = self._exported.vocabularies["target"].begin_id
        given = np.array([begin, *one[:place]])
        pairs = [np.append(given, token) for token in (one[place], two[place])]
        scores = [row[-1] for row in forced(self._exported.generator, [self.sources[number]] * 2, pairs)]
        return abs(scores[0] - scores[1]) <= TIE

    def _as_evaluated(self, converted: Translator) -> dict[str, float]:
        """Return the score of translations with the parameters of `evaluate`, which may use another search."""
        decoding = self._exported.decoding
        if decoding.method == "greedy" or decoding.method == "sample":
            return {}
        answers = self._answered(converted, decoding, self._whole)
        hypotheses = [row["hypothesis"] for row in self._rows]
        ((name, own),) = [*self._scored(answers).items()][:1]
        theirs = self._scored(_Answers([], hypotheses))[name]
        equal = sum(own == other for own, other in zip(answers.texts, hypotheses, strict=True))
        figures = {"equal": equal, name: own.score(), f"{name}_minus_exported": round(own.score() - theirs.score(), 4)}
        return {f"as_evaluated_{key}": value for key, value in figures.items()}

    def _answered(self, translator: Translator, params: DecodingParams, sources: Sequence[Ids]) -> _Answers:
        found = [hypotheses[0].ids for hypotheses in translator.decoder(sources, params, Observer(), None)]
        target = self._exported.vocabularies["target"]
        return _Answers(found, [self._exported.text(target.decode(ids)) for ids in found])

    def _scored(self, answers: _Answers) -> dict[str, Metric]:
        references = [row["reference"] for row in self._rows]
        target = self._exported.pretokenizers["target"]
        return text_metrics(answers.texts, references, cased=not target.lowercase, language=target.language)


def forced(generator: Generator, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
    """Return the log probability of each target token after the first, given source and previous tokens, stepwise."""
    found: list[list[float]] = [[] for _ in targets]
    for rows in sorted_batches(np.array([len(target) for target in targets]), _BATCH):
        cache = generator.start(padded([sources[row] for row in rows], generator.source_pad_id))
        given = padded([targets[row] for row in rows], 0)
        for step in range(given.shape[1] - 1):
            log_probabilities = generator.log_probabilities(given[:, step], cache, None)
            for place, row in enumerate(rows):
                if step + 1 < len(targets[row]):
                    found[row].append(float(log_probabilities[place, given[place, step + 1]]))
    return found


def _forced_by(translator: Translator, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
    decoder: Any = translator.decoder
    if isinstance(decoder, Search):
        return forced(decoder.generator, sources, targets)
    scored: list[list[float]] = decoder.forced(sources, targets)
    return scored


__all__ = ["Params", "run"]


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return Seq2SeqConverter(params, paths).run(observer)


class Seq2SeqConverter(Converter[TorchTranslator, Verification]):
    """Converter for translation models."""

    kind = TorchTranslator

    def ctranslate2(self) -> Conversion | str:
        """Return the CTranslate2 conversion, or the reason why there is none."""
        model, vocabularies = self.exported.model, self.exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"
        if isinstance(model.encoder, EvolvedEncoder):
            return "CTranslate2 has no cells of the Evolved Transformer (model.layer `evolved`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabularies["source"], vocabularies["target"], int8=int8)

        example = ctranslate2_example(self.rows[0]["source"], self._first_pieces(), self.exported)
        return self.conversion(vocabularies, self.exported.generator.positions, example, write)

    def onnx(self) -> Conversion | str:
        """Return the ONNX conversion, or the reason why there is none."""
        model, vocabularies = self.exported.model, self.exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "recurrent decoders (model.kind `recurrent`) are served by PyTorch alone"
        if isinstance(model.encoder, EvolvedEncoder):
            return "the cells of the Evolved Transformer (model.layer `evolved`) are served by PyTorch alone"
        graphs = onnx_graphs(model, vocabularies["target"])

        def write(folder: Path, int8: bool) -> None:
            write_onnx(folder, graphs, vocabularies, int8=int8)

        example = onnx_example(self.rows[0]["source"], self._first_pieces(), self.exported)
        return self.conversion(vocabularies, self.exported.generator.positions, example, write)

    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """Return the verification of converted models on `rows`."""
        return Verification(self.paths.bundle, self.exported, rows, self.params.hardware.threads)

    def _first_pieces(self) -> list[str]:
        return self.exported.vocabularies["source"].entries(self.verification.sources[0])
