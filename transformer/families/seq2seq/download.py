"""download: writes sentence pairs, one column per language."""

import re
from functools import partial
from pathlib import Path

from pydantic import Field, field_validator

from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task
from transformer.corpora.corpus import Row, checked_rows, clean_text
from transformer.corpora.output import CORE_SPLITS, beside, write_corpus
from transformer.corpora.sources import Download, open_corpus, sample_of

_LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z0-9]+)*")


class PairsDownload(Download):
    """Where the sentence pairs come from."""

    languages: tuple[str, str] = Field(strict=False)
    """The two language codes: suffixes of the text files, or column names."""

    @field_validator("languages")
    @classmethod
    def _two_codes(cls, languages: tuple[str, str]) -> tuple[str, str]:
        if languages[0] == languages[1] or not all(_LANGUAGE.fullmatch(code) for code in languages):
            raise ValueError(f"must be two different language codes such as [de, en], not {list(languages)}")
        return languages


class Params(StageParams):
    """The stage's parameters."""

    download: PairsDownload


def run(task: Task, params: Params, *, output: Path, observer: Observer) -> dict[str, float]:
    """Write the corpus into the folder `output`; returns the rows per split. Raises UserError."""
    section = params.download
    with open_corpus(
        section,
        columns=section.languages,
        sample=sample_of(task),
        scratch=beside(output, "hub"),
        progress=params.runtime.progress,
    ) as corpus:
        corpus.require(CORE_SPLITS)
        check = partial(check_pair, languages=section.languages)
        splits = {split: checked_rows(parts, check) for split, parts in corpus.splits.items()}
        return write_corpus(
            output, splits, origin=corpus.origin, expected_sha256=section.expected_sha256, observer=observer
        )


def check_pair(row: Row, *, languages: tuple[str, str]) -> Row:
    """The two sentences of a row, cleaned. Raises ValueError when one is missing, empty or not a string."""
    return {language: clean_text(row, language) for language in languages}
