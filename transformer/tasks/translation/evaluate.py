"""evaluate: perplexity, BLEU and chrF on validation and every test split."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from transformer.decoding.seq2seq.config import DecodingParams
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
from transformer.evaluation.translation import bleu_by_length, text_scores, token_scores
from transformer.files import read_json, read_rows, write_json, write_table
from transformer.observer import Observer
from transformer.params.schema import Hardware, StageParams
from transformer.tasks.translation.encoded import EncodedPairs, perplexity
from transformer.tasks.translation.inference import Translator
from transformer.text.pretokenize import PreTokenizer, PreTokenizerParams
from transformer.training.device import prepare

COLUMNS = ("split", "source", "reference", "hypothesis")


class Params(StageParams):
    """What the stage reads."""

    evaluate: DecodingParams
    hardware: Hardware


def run(
    params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write figures a split and every translation. Returns the validation figures."""
    compute = prepare(params.hardware)
    translator = Translator(inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device)
    figures: dict[str, dict[str, float] | dict[str, str]] = {}
    table: list[tuple[str, str, str, str]] = []
    for split in evaluated_splits(inputs.corpus):
        pairs = EncodedPairs(inputs.encoded / split, translator.model.config)
        pairs.report(observer)
        decoded = translator.decode([pairs.source[row] for row in range(len(pairs))], observer)
        texts = _Texts(inputs.corpus, inputs.tokens, split, decoded, translator)
        with torch.inference_mode():
            loss, _ = pairs.score(translator.model, params.evaluate.batch_size, compute.device)
        scores, signatures = texts.scores()
        figures[split] = scores | {
            "perplexity": _five_digits(perplexity(loss)),
            "word_perplexity": _five_digits(perplexity(loss * pairs.predicted / texts.words())),
            "sentences": len(pairs),
        }
        figures["signatures"] = signatures
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in scores.items()))
        table += texts.rows(split)
        if split == "test":
            write_table(outputs.plots / "bleu_by_length.tsv", ("source_length", "sentences", "bleu"), texts.by_length())
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, COLUMNS, table)
    return {name: float(value) for name, value in figures["validation"].items()}


def _five_digits(value: float) -> float:
    """Below them, batches of another size sum in another order."""
    return float(f"{value:.5g}")


def evaluated_splits(corpus: Path) -> list[str]:
    """Validation, test and the further test splits that the corpus holds."""
    return sorted(
        (split for split in read_json(corpus / "provenance.json")["rows"] if split.startswith(("validation", "test"))),
        key=lambda split: (not split.startswith("validation"), split),
    )


class _Texts:
    """One split's sources, references and hypotheses, as text and as tokens."""

    def __init__(self, corpus: Path, tokens: Path, split: str, decoded: Sequence[str], translator: Translator) -> None:
        source, target = (translator.pretokenizers[side] for side in ("source", "target"))
        raw = list(read_rows(corpus / f"{split}.jsonl"))
        self.sources = [row[str(source.language)] for row in raw]
        self.references = [row[str(target.language)] for row in raw]
        self.hypotheses = [translator.text(text) for text in decoded]
        self.cased = not target.lowercase
        if target.kind == "spacy":
            self.hypothesis_tokens = list(decoded)
            self.reference_tokens = [row["target"] for row in read_rows(tokens / f"{split}.jsonl")]
        else:
            split_words = PreTokenizer(PreTokenizerParams(kind="spacy", language=target.language, lowercase=True))
            self.hypothesis_tokens = split_words(self.hypotheses)
            self.reference_tokens = split_words(self.references)

    def scores(self) -> tuple[dict[str, float], dict[str, str]]:
        """The figures, and the signatures of those that have one."""
        by_token, token_signatures = token_scores(self.hypothesis_tokens, self.reference_tokens)
        by_text, text_signatures = text_scores(self.hypotheses, self.references, cased=self.cased)
        return by_token | by_text, token_signatures | text_signatures

    def words(self) -> int:
        """Words of the references, with an end a sentence: what perplexities of any vocabulary can be compared by."""
        return max(sum(len(tokens.split()) + 1 for tokens in self.reference_tokens), 1)

    def by_length(self) -> list[tuple[str, int, float]]:
        """BLEU by the number of source words."""
        return bleu_by_length(self.sources, self.hypothesis_tokens, self.reference_tokens)

    def rows(self, split: str) -> Iterator[tuple[str, str, str, str]]:
        """The split's lines of the predictions."""
        for source, reference, hypothesis in zip(self.sources, self.references, self.hypotheses, strict=True):
            yield split, source, reference, hypothesis
