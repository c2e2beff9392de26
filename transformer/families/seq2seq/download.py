"""download: writes sentence pairs, one column per language."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unicodedata import normalize

from pydantic import Field, field_validator

from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.corpus import Row, clean_text
from transformer.data.select import Selection
from transformer.data.sources import AddingDownload, open_corpus

_LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z0-9]+)*")


class PairsDownload(AddingDownload):
    """Source of the sentence pairs."""

    languages: tuple[str, str] = Field(strict=False)
    """The two language codes: suffixes of the text files, or column names."""
    max_ratio: float | None = Field(gt=1)
    """Training pairs whose longer side has more than this many times the characters of the
    shorter are dropped; null for no limit."""

    @field_validator("languages")
    @classmethod
    def _two_codes(cls, languages: tuple[str, str]) -> tuple[str, str]:
        if languages[0] == languages[1] or not all(_LANGUAGE.fullmatch(code) for code in languages):
            raise ValueError(f"must be two different language codes such as [de, en], not {list(languages)}")
        return languages


class Params(StageParams):
    """The stage's parameters."""

    download: PairsDownload


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the corpus to `paths.corpus`. Returns the rows per split. Raises UserError."""
    section = params.download
    with open_corpus(
        section,
        task,
        columns=section.languages,
        output=paths.corpus,
        progress=params.runtime.progress,
        added=Path(section.added),
    ) as corpus:
        corpus.require(("train",))
        check = partial(check_pair, languages=section.languages)
        return Selection(corpus, section, unfit=partial(_unequal, limit=section.max_ratio)).write(
            paths.corpus,
            lambda split: check,
            label=lambda row: None,
            text=lambda row: _letters(row[section.languages[0]]),
            finish=partial(_processed, observer=observer),
            observer=observer,
        )


_PROCESSED = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|(?<!\S)@[-,./:]@(?!\S)|@@(?!\S)")
"""What Moses' tokenizer (entities, ` @-@ `) and subword-nmt (`@@` at the end of a piece) leave."""
_READ = 10_000  # rows
_MANY = 0.02  # of them


def _processed(folder: Path, observer: Observer) -> Mapping[str, Any]:
    """Say once if many training rows were tokenized or escaped before: answers and BLEU would be of such text."""
    rows = [*islice(read_rows(folder / "train.jsonl"), _READ)]
    found = [match[0] for row in rows if (match := _PROCESSED.search("\n".join(row.values())))]
    if len(found) > _MANY * len(rows):
        shown = ", ".join(mark for mark, _ in Counter(found).most_common(3))
        observer.say(
            f"warning: {len(found):,} of train's first {len(rows):,} rows were tokenized or escaped before ({shown}):"
            " answers will look like that, and BLEU is not that of plain text; undo it (Moses' detokenizer) first"
        )
    return {}


def check_pair(row: Row, *, languages: tuple[str, str]) -> Row:
    """Return the two cleaned sentences of a row. Raises ValueError if one is missing, empty or not a string."""
    return {language: clean_text(row, language) for language in languages}


def _unequal(pair: Row, *, limit: float | None) -> str | None:
    shorter, longer = sorted(map(len, pair.values()))
    return "sides too unequal for max_ratio" if limit is not None and longer > limit * shorter else None


def _letters(text: str) -> str:
    """Return the lowercased letters and digits, so that sentences with the same ones share a split."""
    return "".join(letter for letter in normalize("NFC", text).casefold() if letter.isalnum())
