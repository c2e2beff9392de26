"""Scores of word-level baselines on the corpora in `data/`: `python -m benchmarks.sample_baselines`.

Sentiment: the majority class, and logistic regression over word counts. Translation: a word-for-word dictionary learned
from the train split, in German word order.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import sacrebleu
import spacy
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json

Figures = dict[str, float]
Tokens = list[str]


def _texts(rows: Iterable[dict[str, str]], language: str) -> list[Tokens]:
    """One side of the rows as lowercased tokens of spaCy's rule-based tokenizer."""
    tokenizer = spacy.blank(language).tokenizer
    return [[token.text.lower() for token in tokenizer(row[language]) if not token.is_space] for row in rows]


def dictionary(german: Iterable[Tokens], english: Iterable[Tokens]) -> dict[str, str]:
    """Map each German word to the English word with the highest Dice coefficient, counted per sentence."""
    de_count, en_count = Counter[str](), Counter[str]()
    both: dict[str, Counter[str]] = defaultdict(Counter)
    for de, en in zip(german, english, strict=True):
        en_words = sorted(set(en))
        en_count.update(en_words)
        for word in sorted(set(de)):
            de_count[word] += 1
            both[word].update(en_words)

    def dice(word: str, other: str) -> float:
        return 2 * both[word][other] / (de_count[word] + en_count[other])

    return {word: max(sorted(others), key=lambda other: dice(word, other)) for word, others in both.items()}


def translation_figures(train: list[dict[str, str]], test: list[dict[str, str]]) -> Figures:
    """BLEU and chrF of the word-for-word dictionary on lowercased tokens; unknown words stay as they are."""
    known = dictionary(_texts(train, "de"), _texts(train, "en"))
    answers = [" ".join(known.get(word, word) for word in words) for words in _texts(test, "de")]
    references = [[" ".join(words) for words in _texts(test, "en")]]
    bleu = sacrebleu.corpus_bleu(answers, references, tokenize="none", force=True).score
    return {"dictionary_bleu": bleu, "dictionary_chrf": sacrebleu.corpus_chrf(answers, references).score}


def sentiment_figures(train: list[dict[str, str]], test: list[dict[str, str]]) -> Figures:
    """Accuracy of the train split's most frequent label, and of logistic regression over single words."""
    labels = [row["label"] for row in train]
    expected = [row["label"] for row in test]
    majority = max(sorted(set(labels)), key=labels.count)
    counter = CountVectorizer()
    model = LogisticRegression(max_iter=1000)
    model.fit(counter.fit_transform([row["text"] for row in train]), labels)
    unigram = model.score(counter.transform([row["text"] for row in test]), expected)
    return {"majority_accuracy": expected.count(majority) / len(expected), "unigram_accuracy": float(unigram)}


def measure(data: Path) -> dict[str, Figures]:
    """The scores of both tasks. Raises UserError when a corpus is missing or empty."""
    figures = {}
    for task, score in (("translation", translation_figures), ("sentiment", sentiment_figures)):
        splits = [list(read_rows(data / task / "corpus" / f"{split}.jsonl")) for split in ("train", "test")]
        if not all(splits):
            raise UserError(f"{data / task / 'corpus'} has a split without rows: run `dvc repro download@{task}`")
        figures[task] = score(*splits)
    return figures


def table(figures: dict[str, Figures]) -> str:
    """The scores as text, one per line."""
    return "\n".join(
        f"{task:<12} {name:<20} {value:8.4f}" for task, row in figures.items() for name, value in row.items()
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns 1 when the data is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the corpora (default: data)")
    parser.add_argument("--json", type=Path, help="also write the scores to this file")
    options = parser.parse_args(arguments)
    try:
        figures = measure(options.data)
        if options.json:
            write_json(options.json, figures)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
