"""What a folder of files holds: sentence pairs or labelled texts, and in which columns."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from transformer.core.errors import UserError
from transformer.core.task import MOST_CLASSES
from transformer.corpora.columns import Columns
from transformer.corpora.corpus import Fault, Part, Row
from transformer.corpora.files import read_folder
from transformer.corpora.layouts import text_extensions
from transformer.families.classifier.download import is_number, label_name
from transformer.registry import TASKS

_PEEKED = 1000  # rows, about, by which the columns of a larger file are told apart
_FEW = 20  # different values of a column of labels, at most
_SHORT = 40  # characters of a label, at most
_LABELS = ["label", "labels", "class", "category", "rating", "stars", "score", "target", "y"]
_CERTAIN = ["label", "labels", "class", "category", "intent"]
"""Names of a column that holds labels even if they are many and long."""
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")
_WORDS = 4  # of a name, from which it is a sentence
_ROLES = ("src", "tgt", "trg", "ref")
"""Names of sides that look like codes of languages."""
_CODES = {
    **{"arabic": "ar", "chinese": "zh", "czech": "cs", "dutch": "nl", "english": "en", "finnish": "fi"},
    **{"french": "fr", "german": "de", "hindi": "hi", "italian": "it", "japanese": "ja", "korean": "ko"},
    **{"polish": "pl", "portuguese": "pt", "russian": "ru", "spanish": "es", "swahili": "sw", "turkish": "tr"},
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """How a folder's rows are to be read."""

    family: str
    columns: Mapping[str, str]
    """Our names to the corpus's."""
    other_labels: Sequence[str] = ()
    """Further columns that may hold the label."""
    other_texts: Sequence[str] = ()
    """Further columns with text, or beside pairs with few values, which are not read."""

    @property
    def texts(self) -> list[str]:
        """Our names of the columns with text."""
        return [name for name in self.columns if name != "label"]


def recognise(folder: Path, languages: Sequence[str] | None = None) -> Found:
    """Tell pairs from labelled texts by the files' names and the first rows' columns. Raises UserError."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds train and, if there are any, val and test")
    extensions = text_extensions(folder)
    if len(extensions) == 2:
        return Found(family="seq2seq", columns=_sides(extensions, extensions, languages))
    if extensions:
        raise UserError(
            f"{folder} has train in {', '.join(extensions)}: plain text must be in two languages; for a language model,"
            " name the file in `language.download`, as docs/language-models.md says"
        )
    corpus = read_folder(folder, columns=Columns({}))
    corpus.require(("train",))
    read = (row for part in corpus.splits["train"] for row in part.read())
    rows = _spread(row for row in read if isinstance(row, dict))
    if not rows:
        _say_why(corpus.splits["train"])
    return _by_columns(folder, rows, languages)


def _say_why(parts: Sequence[Part]) -> None:
    """Raise UserError with what is wrong with the first row, if there is one that cannot be read."""
    for part in parts:
        for number, row in enumerate(part.read(), start=part.first):
            if isinstance(row, Fault):
                raise UserError(f"{part.name}, {part.unit} {number}: {row.reason}")


def _by_columns(folder: Path, rows: Sequence[Row], languages: Sequence[str] | None) -> Found:
    values = _values(rows)
    if _is_row([*values], values):
        raise UserError(
            f"{folder}: the first row of train ({', '.join(values)}) looks like data: a table needs a header row with"
            " the columns' names, such as `label` and `text`, or languages"
        )
    if languages and (named := [name for name in values if _code(name) in languages]) and len(named) == 2:
        rest = tuple(name for name, column in values.items() if name not in named and _is_text(column))
        sides = _sides([_code(name) for name in named], named, languages)
        return Found(family="seq2seq", columns=sides, other_texts=rest)
    certain = [name for name, column in values.items() if name.lower() in _CERTAIN and _is_label(column, MOST_CLASSES)]
    texts = [name for name, column in values.items() if name not in certain and _is_text(column)]
    labels = [
        name for name, column in values.items() if name in certain or (name not in texts and _is_label(column, _FEW))
    ]
    labels.sort(key=lambda name: name.lower() not in (*_LABELS, *TASKS))
    # Of two letters, and not `id`, which is Indonesian less often than an identifier.
    if len(texts) == 2 and not certain and all(re.fullmatch("(?!id)[a-z]{2}([-_].+)?", _code(name)) for name in texts):
        sides = _sides([_code(name) for name in texts], texts, languages)
        return Found(family="seq2seq", columns=sides, other_texts=(*labels,))
    if not texts and "text" in values and {*labels} - {"text"}:  # short, as in some scripts
        texts, labels = ["text"], [name for name in labels if name != "text"]
    if labels and texts:
        longest = max(texts, key=lambda name: sum(map(len, map(str, values[name]))))
        return Found(
            family="classifier",
            columns={"label": labels[0], "text": longest},
            other_labels=(*labels[1:],),
            other_texts=tuple(name for name in texts if name != longest),
        )
    for name in (each for each in values if each.lower() in _CERTAIN):
        if (many := len({*map(str, values[name])})) > MOST_CLASSES:
            raise UserError(f"{folder}: `{name}` has {many} different labels, at most {MOST_CLASSES}: join rare ones")
    if len(texts) == 2:
        return Found(family="seq2seq", columns=_sides([_code(name) for name in texts], texts, languages))
    if texts and (
        alone := [name for name in values if name.lower() in _LABELS and len({*map(str, values[name])}) == 1]
    ):
        value = values[alone[0]][0]
        raise UserError(f"{folder}: every row has the {alone[0]} {value!r}: a classifier needs at least two labels")
    raise UserError(
        f"{folder}: of the columns {', '.join(values) or '(none)'} neither two are sentences nor one a text and one its"
        " label: call them `text` and `label`, or after their languages with `--languages`, or give params.yaml their"
        " names in `download.columns` by hand"
    )


def _code(name: str) -> str:
    """The code of the language that a column is called after, else the column's last name."""
    last = name.rpartition(".")[2]
    return _CODES.get(last.lower(), last.lower() if last.isupper() else last)


def _spread(rows: Iterator[Row]) -> list[Row]:
    """Rows from all over the file, which may be sorted by label, or have its labels by turns."""
    kept: list[Row] = []
    draw, share = Random(1), 1.0
    for row in rows:
        if draw.random() < share:
            kept.append(row)
        if len(kept) == 2 * _PEEKED:
            kept, share = [row for row in kept if draw.random() < 0.5], share / 2
    return kept


def _sides(codes: Sequence[str], names: Sequence[str], languages: Sequence[str] | None) -> dict[str, str]:
    """The columns by language, English last unless the languages are given in their order."""
    if languages and languages[0] == languages[1]:
        raise UserError(f"--languages: say two different codes, not {' and '.join(languages)}")
    codes = [code.lower() if code.isupper() else code for code in codes]  # Excel's headers
    if codes[0] == codes[1]:
        raise UserError(f"{' and '.join(names)} both stand for `{codes[0]}`: rename one of them")
    strange = [code for code in codes if not _is_language(code)]
    if languages and {*languages} == {*codes}:
        return {code: names[codes.index(code)] for code in languages}
    said = [code for code in codes if code not in strange]
    if languages and not {*said} <= {*languages}:
        raise UserError(f"the sides are called {' and '.join(codes)}: give just these as --languages, in either order")
    if languages:
        rest = iter([code for code in languages if code not in said])
        found = {(next(rest) if code in strange else code): name for code, name in zip(codes, names, strict=True)}
        return {code: found[code] for code in languages}
    if strange:
        raise UserError(
            f"{' and '.join(names)} are not called after languages: if they are sides of translations, say both"
            " languages in their order, as in `--languages de en`"
        )
    return dict(sorted(zip(codes, names, strict=True), key=lambda each: re.split("[-_]", each[0])[0] == "en"))


def _is_language(code: str) -> bool:
    """Whether it looks like a code, such as `de`, `pt_BR` or `zh-Hans`."""
    return code not in _ROLES and bool(_CODE.fullmatch(code))


def _is_row(names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the columns' names are a row of the table: sentences, or one of a column's few values and a text."""
    if len(names) < 2:
        return False
    own = [name for name in names if _is_label(values[name], _FEW) and name in map(str, values[name])]
    sentences = [
        name for name in names if len(name.split()) >= _WORDS or name.endswith((".", "?", "!", "。", "؟", "।"))
    ]
    numbered = all(map(is_number, names))  # as pandas does where it is given no names
    return bool(own and (sentences or (any(map(is_number, own)) and not numbered))) or len(sentences) == len(names)


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
    texts = [value for value in column if isinstance(value, str) and value.strip()]
    if len(texts) < len(column) / 2:
        return False
    different, mean = len({*texts}), sum(map(len, texts)) / max(len(texts), 1)
    return (different > _FEW or different > len(texts) / 2) and mean > 5 and not all(map(is_number, texts))


def _is_label(column: Sequence[Any], most: int) -> bool:
    """Whether it has few values, which return. most: how many values, at most."""
    try:
        names = {label_name(value) for value in column} - {None}
    except ValueError:
        return False
    return 2 <= len(names) <= min(most, max(_FEW, len(column) // 2)) and all(len(str(name)) <= _SHORT for name in names)
