"""Whether the fields of a corpus's TSV files are quoted, as by pandas and Excel, or quotation marks are text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from transformer.corpora.corpus import Fault

_FIELD = r'"[^"]*(?:""[^"]*)*"|[^"\t]*'
_QUOTED_LINE = re.compile(rf"(?:{_FIELD})(?:\t(?:{_FIELD}))*")
_QUOTED_FIELD = re.compile(rf"(?:^|\t)({_FIELD})")
_DOUBLED = re.compile(r'(?:^|\t)"[^"]*""')
Lines = Callable[[Path], Iterable[str | Fault]]


class Quoting:
    """Splits the lines of TSV files, all of one corpus in one way: else train could be read in another than test.

    pandas and Excel quote every field that contains a quotation mark, and double it there. So files in which any line
    is not written like that have quotation marks as text, unless more lines have doubled ones: these show that the
    others are faulty.
    """

    def __init__(self, paths: Sequence[Path], lines: Lines) -> None:
        self._paths, self._lines = paths, lines
        self._quoted: bool | None = None

    def split(self, line: str) -> list[str] | Fault:
        """The fields of a line."""
        if self._quoted is None:
            self._quoted = self._decided()
        if not self._quoted or '"' not in line:
            return line.split("\t")
        if not _QUOTED_LINE.fullmatch(line):
            return Fault(
                "a quotation mark is not doubled, or its field does not end, where other fields are quoted; fields must"
                " not contain line ends: use JSON lines for those"
            )
        fields = [match[1] for match in _QUOTED_FIELD.finditer(line)]
        return [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields]

    def _decided(self) -> bool:
        doubled = faulty = 0
        for line in self._with_quotation_marks():
            if not _QUOTED_LINE.fullmatch(line):
                faulty += 1
            elif _DOUBLED.search(line):
                doubled += 1
        return not faulty or doubled > faulty

    def _with_quotation_marks(self) -> Iterator[str]:
        for path in self._paths:
            yield from (line for line in self._lines(path) if isinstance(line, str) and '"' in line)
