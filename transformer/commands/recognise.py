"""What a folder of files holds: sentence pairs or labelled texts, and in which columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from transformer.core.errors import UserError
from transformer.corpora.columns import Columns
from transformer.corpora.corpus import LeftOut, Row, checked_rows
from transformer.corpora.files import read_folder
from transformer.corpora.layouts import text_extensions

_PEEKED = 1000  # rows by which the columns of a larger file are told apart
_FEW = 20  # different values of a column of labels, at most
_LABELS = ("label", "labels", "class", "category", "intent", "rating", "stars")
_TEXTS = ("text", "sentence", "review", "comment", "message", "content")
_CODE = re.compile("(?!id)[a-z]{2}([-_].+)?")  # `id` is Indonesian less often than an identifier
_CODES = {
    **{"arabic": "ar", "chinese": "zh", "czech": "cs", "dutch": "nl", "english": "en", "finnish": "fi"},
    **{"french": "fr", "german": "de", "hindi": "hi", "italian": "it", "japanese": "ja", "korean": "ko"},
    **{"polish": "pl", "portuguese": "pt", "russian": "ru", "spanish": "es", "swahili": "sw", "turkish": "tr"},
}
_SAY = "say `--columns label=COLUMN text=COLUMN`, or for translations `--columns de=COLUMN en=COLUMN`, source first"


@dataclass(frozen=True, kw_only=True)
class Found:
    """How a folder's rows are to be read."""

    family: str
    columns: Mapping[str, str]
    """Our names to the corpus's."""

    @property
    def texts(self) -> list[str]:
        """Our names of the columns with text."""
        return [name for name in self.columns if name != "label"]


def recognise(folder: Path, given: Sequence[str] | None = None) -> Found:
    """Tell pairs from labelled texts by the names of files and columns, or by the first rows where names do not say.

    given: our two columns with their names in the corpus, such as `label=stars`. Raises UserError where it is unclear.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds train and, if there are any, val and test")
    if given:
        return _found({ours: theirs or ours for ours, _, theirs in (each.partition("=") for each in given)})
    if extensions := text_extensions(folder):
        columns = _languages(extensions)
        if len(columns) == len(extensions) == 2:
            return _found(columns)
        raise UserError(
            f"{folder} has train in {', '.join(extensions)}: plain text must be in two languages; {_SAY}; for a"
            " language model, name the file in `language.download`, as docs/language-models.md says"
        )
    corpus = read_folder(folder, columns=Columns({}))
    corpus.require(("train",))
    left_out = LeftOut("skip")
    rows = _spread(checked_rows(corpus.splits["train"], lambda row: row, left_out))
    if not rows and left_out.shown:
        raise UserError(left_out.shown[0])
    return _found(_by_columns(folder, _values(rows)))


def _found(columns: Mapping[str, str]) -> Found:
    if len(columns) != 2:
        raise UserError(f"`--columns` names {len(columns)} columns, not two: {_SAY}")
    return Found(family="classifier" if columns.keys() == {"label", "text"} else "seq2seq", columns=columns)


def _by_columns(folder: Path, values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    named = [name for name in values if name.lower() in _LABELS]
    sides = _languages([name for name, column in values.items() if any(isinstance(each, str) for each in column)])
    if len(sides) == 2 and not named:
        return sides
    texts = [name for name in values if name.lower() in _TEXTS] or [name for name in values if _is_text(values[name])]
    labels = named or [name for name in values if name not in texts and _is_label(values[name])]
    if len(labels) != 1 or len(texts) != 1:
        raise UserError(
            f"{folder} has the columns {', '.join(values) or '(none)'}, which do not tell what to read (a table needs"
            f" a header row): {_SAY}"
        )
    if labels[0] in map(str, values[labels[0]]):
        raise UserError(
            f"{folder}: the first row of train ({', '.join(values)}) looks like data: a table needs a header row; if it"
            f" is one, {_SAY}"
        )
    return {"label": labels[0], "text": texts[0]}


def _languages(names: Iterable[str]) -> dict[str, str]:
    """The names that are those of languages, by code; English is last, the target."""
    codes = {}
    for name in names:
        last = name.rpartition(".")[2]
        code = _CODES.get(last.lower(), last.lower() if last.isupper() else last)
        if _CODE.fullmatch(code):
            codes[code] = name
    return dict(sorted(codes.items(), key=lambda each: re.split("[-_]", each[0])[0] == "en"))


def _spread(rows: Iterable[Row]) -> list[Row]:
    """Rows from all over the file, which may be sorted by label."""
    kept: list[Row] = []
    draw = Random(1)
    for number, row in enumerate(rows):
        if number < _PEEKED:
            kept.append(row)
        elif (place := draw.randrange(number + 1)) < _PEEKED:
            kept[place] = row
    return kept


def _values(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The values of each column; those within a mapping by `outer.inner`."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            inner = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            for path, each in inner.items():
                values.setdefault(path, []).append(each)
    return values


def _is_text(column: Sequence[Any]) -> bool:
    """Whether there are many different values of several words."""
    different = {value for value in column if isinstance(value, str) and " " in value.strip()}
    return len(different) > min(_FEW, len(column) / 2)


def _is_label(column: Sequence[Any]) -> bool:
    return 2 <= len({str(value) for value in column}) <= _FEW
