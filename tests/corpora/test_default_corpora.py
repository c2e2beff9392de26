"""The sample corpora of params.yaml: evaluation splits never change, and training lacks their combinations."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest

from tests.conftest import ROOT
from transformer.core.files import read_json, read_rows, read_table
from transformer.core.observer import Observer
from transformer.core.params import read_params, stage_params
from transformer.core.task import family_module, open_task
from transformer.registry import TASKS
from transformer.tasks.sentiment.sample import splits as sentiment_splits
from transformer.tasks.sentiment.sample import words
from transformer.tasks.sentiment.sample.statements import items
from transformer.tasks.translation.sample import splits as translation_splits
from transformer.tasks.translation.sample.lexicon import ADJECTIVES, NOUNS

EVALUATED = {
    "translation": {
        "validation": "e3d841188f72dc61b4af00079cdbb70c10a7571b5803b8d39322119cda7d74d2",
        "test": "916500519f393fe637a7cdfe60f3f7830710c0de0b1a9941e907343ef21aa554",
    },
    "language": {
        "validation": "6fbeb2560cdca2ec96dc2751224f87312fcf43a4c24592a4c54bc7d87447abae",
        "test": "ce5bba80406d929c8daa33a4fbaebecdce71b5d57518f54550dcb9c0ef1a43c0",
    },
    "sentiment": {
        "validation": "fe3a27586a4f6dfb4f844d44ae8ed1a047d580e50734583f477666ed05ba7aa9",
        "test": "4890fe648dd55df59bb27769ae6bf72fa840ea33b743ad3069b21a040f522162",
    },
}
"""SHA-256 of the files, as in provenance.json: metrics of different versions compare only while these are the same."""


_REVIEWS = 4000  # per split: forty patterns per review take a millisecond


@pytest.fixture(scope="module", params=[5000, pytest.param(None, marks=pytest.mark.stress)], ids=["part", "whole"])
def corpora(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each task's corpus, as `download` writes it with params.yaml, or with fewer rows of train."""
    root = tmp_path_factory.mktemp("corpora")
    content = read_params(ROOT / "params.yaml")
    for task in TASKS if request.param else ():
        content[task]["download"]["sample_rows"]["train"] = request.param
    content["language"]["download"]["held_out"] = str(root / "sentiment")
    for task in reversed(TASKS):
        stage = family_module(open_task(task), "download")
        params = stage_params(content, task, stage.Params, where=ROOT / "params.yaml")
        stage.run(open_task(task), params, output=root / task, observer=Observer())
    return root


@pytest.mark.parametrize("task", TASKS)
def test_the_evaluation_splits_never_change(task: str, corpora: Path) -> None:
    written = read_json(corpora / task / "provenance.json")["sha256"]
    assert {split: written[split] for split in EVALUATED[task]} == EVALUATED[task]


@pytest.mark.parametrize(("task", "column"), [("translation", "de"), ("sentiment", "text")])
def test_no_row_of_an_evaluation_split_is_in_train(task: str, column: str, corpora: Path) -> None:
    splits = ("train", "validation", "test")
    train, validation, test = (
        {row[column] for row in read_rows(corpora / task / f"{split}.jsonl")} for split in splits
    )
    assert len(train) > 4000 and len(validation) >= 490 and len(test) >= 490
    assert not train & test
    assert not train & validation
    assert not test & validation


def _captions(corpora: Path, split: str) -> Counter[str]:
    """The number of adjective-noun pairs that belong to each split, found in the words of the rows."""
    stems = {stem: entry.de for entry in ADJECTIVES for stem in (entry.stem, entry.de)}
    adjectives = {stem + ending: stems[stem] for stem in stems for ending in ("e", "er", "es", "en", "em")}
    forms = ((form, entry.de) for entry in NOUNS for form in (entry.de, entry.plural) if form)
    nouns = {form + ending: name for form, name in forms for ending in ("", "n", "en")}
    found = Counter[str]()
    for row in read_rows(corpora / "translation" / f"{split}.jsonl"):
        text = row["de"][0].lower() + row["de"][1:]  # `Junge` can be an adjective only in first position
        for first, second in pairwise(re.findall(r"\w+", text)):
            if first in adjectives and second in nouns:
                found[translation_splits.split_of((adjectives[first], nouns[second]))] += 1
    return found


def _either(choices: Iterator[str] | tuple[str, ...]) -> str:
    return "|".join(sorted(map(re.escape, choices), key=len, reverse=True))


def _forms(table: str, **slots: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Each template's key, and a pattern whose groups are the subject and the opinion word."""
    for line in table.strip().splitlines():
        key, template = (cell.strip() for cell in line.split("|"))
        pattern = re.sub(r"\{(\w+)\}", lambda slot: slots[slot[1]], template)
        yield key, re.compile(rf"\b{pattern}\b(?! all the time| but also| as a whole)", re.IGNORECASE)


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    wholes, parts = items(words.WHOLES), items(words.ASPECTS) + items(words.PLURAL_ASPECTS)
    subjects = (*(f"the {name}" for name in wholes + parts), *items(words.SIDESHOWS, "|"))
    slots = {"s": f"(?P<s>{_either(subjects)})", "be": "(?:is|are)", "has": "(?:has|have)", "lack": "lacks?", "b": "x"}
    adjectives, nouns = items(words.GOOD + words.BAD), items(words.GOOD_NOUNS + " " + words.BAD_NOUNS)
    qualities = items(words.GOOD_QUALITIES + " " + words.BAD_QUALITIES)
    base, past = zip(*(entry.split("/") for entry in items(words.LIKING + " " + words.DISLIKING)), strict=True)
    for table in (words.PLAIN_CLAIMS, words.TURNED_CLAIMS):
        yield from _forms(table, a=f"(?P<w>{_either(adjectives)})", **slots)
    for table in (words.PLAIN_NOUNS, words.TURNED_NOUNS):
        yield from _forms(table, n=f"a (?P<w>{_either(nouns)})", **slots)
    for table in (words.PLAIN_QUALITIES, words.TURNED_QUALITIES):
        yield from _forms(table, q=f"(?P<w>{_either(qualities)})", **slots)
    for table in (words.PLAIN_FEELINGS, words.TURNED_FEELINGS):
        yield from _forms(table, base=f"(?P<w>{_either(base)})", past=f"(?P<w>{_either(past)})", **slots)


def _reviews(corpora: Path, split: str) -> Counter[str]:
    """Like `_captions`, for pairs of form or subject and opinion word, in the first reviews."""
    patterns = list(_patterns())
    feelings = dict(entry.split("/")[::-1] for entry in items(words.LIKING + " " + words.DISLIKING))
    found = Counter[str]()
    for row in islice(read_rows(corpora / "sentiment" / f"{split}.jsonl"), _REVIEWS):
        for key, pattern in patterns:
            for said in pattern.finditer(row["text"]):
                word = feelings.get(said["w"], said["w"])
                for name in (key, said["s"][0].lower() + said["s"][1:]):
                    found[sentiment_splits.split_of((name, word))] += 1
    return found


@pytest.mark.parametrize("count", [_captions, _reviews])
def test_training_has_no_held_out_combination(count: Callable[[Path, str], Counter[str]], corpora: Path) -> None:
    """The words themselves are parsed, so this does not rely on what the grammar claims to have drawn."""
    assert set(count(corpora, "train")) == {"train"}
    assert {split: set(count(corpora, split)) for split in ("validation", "test")} == {
        "validation": {"train", "validation"},
        "test": {"train", "test"},
    }


@pytest.mark.parametrize("task", [task for task in TASKS if open_task(task).sample is None])
def test_the_fresh_sentences_have_the_words_of_training_and_are_not_in_it(task: str, corpora: Path) -> None:
    train = list(read_rows(corpora / task / "train.jsonl"))
    for column in sorted({"de", "en", "text"} & set(train[0])):
        texts = {row[column] for row in train}
        known = {word for text in texts for word in re.findall(r"\w+", text.lower())}
        fresh = [row[column] for row in read_table(ROOT / "tests" / "fresh" / f"{task}.tsv")]
        assert len(fresh) == 20
        assert not texts & set(fresh)
        assert {word for text in fresh for word in re.findall(r"\w+", text.lower())} <= known
