"""Detect the columns to read in a folder of files: sentence pairs, or labelled texts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformer.core.errors import UserError
from transformer.corpora.columns import Columns
from transformer.corpora.corpus import Check, LeftOut, Row, checked_rows, clean_text
from transformer.corpora.files import read_folder
from transformer.corpora.layouts import text_extensions

_LABELS = "label labels class category intent topic sentiment rating stars".split()  # noqa: SIM905  # code names no task
_TEXTS = "text sentence review comment message content body".split()  # noqa: SIM905
_CODE = re.compile("(?!id)[a-z]{2}([-_].+)?")  # `id` is Indonesian less often than an identifier
_SAY = "say `--columns label=COLUMN text=COLUMN`, or for translations `--columns de=COLUMN en=COLUMN`, source first"


def recognise(folder: Path, given: Sequence[str] | None = None) -> dict[str, str]:
    """Return the two columns to read, by our names: `label` and `text`, or the codes of two languages, source first.

    given: our names with the corpus's, such as `label=stars`. Raises UserError if the names of files and columns do
    not tell which, or if no row of train has text in them.
    """
    if given:
        columns = {ours: theirs or ours for ours, _, theirs in (each.partition("=") for each in given)}
        if len(columns) != 2:
            raise UserError(f"`--columns` names one column twice: {_SAY}")
    else:
        columns = _by_name(folder, text_extensions(folder) or _column_names(folder))
    texts = [name for name in columns if name != "label"]
    _first_row(folder, columns, lambda row: {name: clean_text(row, name) for name in texts})
    return columns


def _by_name(folder: Path, names: Sequence[str]) -> dict[str, str]:
    codes = [(name.rpartition(".")[2].lower(), name) for name in names]
    languages = [each for each in codes if _CODE.fullmatch(each[0])]
    labels = [name for name in names if name.lower() in _LABELS]
    texts = [name for name in names if name.lower() in _TEXTS]
    if len(languages) == len(dict(languages)) == 2 and not labels:
        return dict(sorted(languages, key=lambda each: each[0][:2] == "en"))  # into English
    if len(labels) == len(texts) == 1:
        return {"label": labels[0], "text": texts[0]}
    raise UserError(
        f"the names in {folder} ({', '.join(names)}) do not tell what to read: a table needs a header row, plain text"
        f" two languages; {_SAY}; for a language model, see docs/language-models.md"
    )


def _column_names(folder: Path) -> list[str]:
    """Return the columns of train; those within a mapping as `outer.inner`."""
    names: list[str] = []
    for name, value in _first_row(folder, {}, lambda row: row).items():
        names += [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name]
    return names


def _first_row(folder: Path, columns: Mapping[str, str], check: Check) -> Row:
    """Return the first valid row of train; columns: as in `Columns`, or empty for all under their own names."""
    read, left_out = Columns(columns), LeftOut("skip")
    corpus = read_folder(folder, columns=read)
    corpus.require(("train",))
    corpus = read.renamed(corpus) if columns else corpus
    row = next(checked_rows(corpus.splits["train"], check, left_out), None)
    if row is None:
        raise UserError(f"no row of train can be used: {next(iter(left_out.shown), 'it is empty')}")
    return row
