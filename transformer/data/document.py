"""The source `document`: plain text files that are one text, whose end is held out."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.unchanged import hint_of_clone, refuse_outside_of_clone
from transformer.data.corpus import LONGEST_FIELD, Corpus, Fault, Part, Row
from transformer.data.files import read_lines

LINE_BREAK = "\u23ce"
"""⏎, which stands for a line break: a text is one line everywhere else."""
_PIECE = re.compile(rf".{{2000,}}?{LINE_BREAK}+|.+")
_LONGEST = LONGEST_FIELD // 2


def read_document(folder: Path, *, validation_fraction: float, test_fraction: float) -> Corpus:
    """Open the files `*.txt` of a folder as one text, in the order of their names, with ⏎ for each line break.

    Its last characters are test, those before validation, both cut behind lines into texts of about 2,000 characters:
    enough of them for an interval, each long enough to have a context. Raises UserError when there is no such file.
    """
    refuse_outside_of_clone(folder)
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        hint = hint_of_clone(folder)
        raise UserError(f"the folder {folder} has no file *.txt: put the text there, or change `path`{hint}")
    shares = {
        "train": 1 - validation_fraction - test_fraction,
        "validation": validation_fraction,
        "test": test_fraction,
    }
    if shares["train"] <= 0:
        raise UserError("validation_fraction and test_fraction leave no text for train: lower them")
    ends = list(accumulate(shares.values(), initial=0.0))
    return Corpus(
        name=f"the text in {folder}",
        splits={
            split: [Part(name=str(folder), read=partial(_rows, paths, *bounds, whole=split == "train"), unit="part")]
            for split, bounds in zip(shares, pairwise(ends), strict=True)
        },
        origin={"source": "document", "files": [path.name for path in paths], "shares": shares},
    )


def _rows(paths: Sequence[Path], first: float, last: float, *, whole: bool) -> Iterator[Row]:
    """Yield the part of the text between two fractions, whole or in pieces."""
    text = "".join(f"{line}{LINE_BREAK}" for path in paths for line in _lines(path))
    part = text[round(first * len(text)) : round(last * len(text))]
    pieces = (part[at : at + _LONGEST] for at in range(0, len(part), _LONGEST)) if whole else _PIECE.findall(part)
    yield from ({"text": piece} for piece in pieces)


def _lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Fault):
            raise UserError(f"{path}, line {number}: {line.reason}")
        yield line
