"""Detect whether the fields of a corpus's TSV files are quoted, as by pandas and Excel, or quotation marks are text."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from transformer.corpora.corpus import Fault

_FIELD = r'"[^"]*(?:""[^"]*)*"|[^"\t]*'
_QUOTED_LINE = re.compile(rf"(?:{_FIELD})(?:\t(?:{_FIELD}))*")
_QUOTED_FIELD = re.compile(rf"(?:^|\t)({_FIELD})")
_DOUBLED = re.compile(r'(?:^|\t)"[^"]*""')
_MOST_LINES = 1000  # of a field
_NOT_DOUBLED = Fault(
    "a quotation mark is not doubled, or its field does not end, where other fields are quoted; fields must not contain"
    " line ends: use CSV or JSON lines for those"
)
_LINE_END = Fault("part of a quoted field with a line end: use CSV or JSON lines for those")
Lines = Callable[[Path], Iterable[str | Fault]]


class Quoting:
    """Split the lines of a corpus's TSV files, all in one way: otherwise train and test could be parsed differently.

    pandas and Excel quote every field that contains a quotation mark or a line end, and double the marks in it. So
    files in which any line is not written like that have quotation marks as text, unless more lines have doubled ones
    or quoted line ends: these show that the others are faulty.
    """

    def __init__(self, paths: Sequence[Path], lines: Lines) -> None:
        self._paths, self._lines = paths, lines
        self._quoted: bool | None = None

    def rows(self, path: Path) -> Iterator[list[str] | Fault]:
        """Yield the fields of each line of a file; a Fault for each line of a field with a line end."""
        if self._quoted is None:
            self._quoted = self._decided()
        for lines in _records(self._lines(path)):
            if len(lines) > 1:
                yield from [_LINE_END] * len(lines)
            else:
                yield lines[0] if isinstance(lines[0], Fault) else self._split(lines[0])

    def _split(self, line: str) -> list[str] | Fault:
        if not self._quoted or '"' not in line:
            return line.split("\t")
        if not _QUOTED_LINE.fullmatch(line):
            return _NOT_DOUBLED
        fields = [match[1] for match in _QUOTED_FIELD.finditer(line)]
        return [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields]

    def _decided(self) -> bool:
        quoted = faulty = 0
        for lines in chain.from_iterable(_records(self._lines(path)) for path in self._paths):
            if isinstance(lines[0], Fault):
                continue
            if len(lines) > 1 or _DOUBLED.search(lines[0]):
                quoted += 1
            elif '"' in lines[0] and not _QUOTED_LINE.fullmatch(lines[0]):
                faulty += 1
        return not faulty or quoted > faulty


def _records(lines: Iterable[str | Fault]) -> Iterator[list[str] | list[Fault]]:
    """Group lines into records: single lines, and those that a field with line ends spans.

    Such lines have as many columns as the header only when they are joined, but for one of them at most. That is how
    they differ from text with quotation marks.
    """
    ahead, rest, tabs = deque[str | Fault](), iter(lines), -1
    while (line := ahead.popleft() if ahead else next(rest, None)) is not None:
        if isinstance(line, Fault):
            yield [line]
            continue
        if tabs < 0:
            tabs = line.count("\t")
        elif line.count('"') % 2 and (more := _continued(line, ahead, rest, tabs)):
            yield [line, *more]
            for _ in more:
                ahead.popleft()
            continue
        yield [line]


def _continued(first: str, ahead: deque[str | Fault], rest: Iterator[str | Fault], tabs: int) -> list[str]:
    """Return the lines that continue a field begun in the first line, or none; reads them from `rest`."""
    lines, whole = [first], int(first.count("\t") == tabs)
    while len(lines) < _MOST_LINES:
        if len(lines) > len(ahead):
            ahead.extend(islice(rest, 1))
        line = ahead[len(lines) - 1] if len(lines) <= len(ahead) else None
        if line is None or isinstance(line, Fault):
            break
        lines.append(line)
        whole += line.count("\t") == tabs
        if whole > 1:
            break
        if line.count('"') % 2:
            joined = "\n".join(lines)
            complete = _QUOTED_LINE.fullmatch(joined) and len(_QUOTED_FIELD.findall(joined)) == tabs + 1
            return lines[1:] if complete else []
    return []
