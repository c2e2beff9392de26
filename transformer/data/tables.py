"""Records of CSV and TSV files, whose quoting is declared."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from transformer.data.corpus import LONGEST_FIELD, Fault

Quotes = Literal["none", "csv", "multiline"]
_MALFORMED = (
    "a quotation mark is not doubled, or its field does not end: fix it, or set `quotes` to none where the marks are"
    " text"
)
_LINE_END = (
    "part of a quoted field with a line end: remove it, or set `quotes` to multiline where fields have line ends"
)


class _Grammar:
    """Lines of fields, each quoted as a whole or without a quotation mark (RFC 4180); blanks around one are ignored."""

    def __init__(self, separator: str) -> None:
        text, plain = '[^"]*+(?:""[^"]*+)*+', f'[^"{separator}]*'
        field = f'(?: *"{text}" *|{plain})'
        self._complete = re.compile(f"{field}(?:{separator}{field})*")
        self._open = re.compile(f'(?:{field}{separator})* *"{text}')
        self._field = re.compile(f'(?:^|{separator})(?: *"({text})" *|({plain}))')

    def ends(self, line: str) -> bool | None:
        """Return whether all fields of a line end on it; None for a line that is malformed."""
        if self._complete.fullmatch(line):
            return True
        return False if self._open.fullmatch(line) else None

    def fields(self, record: str) -> list[str]:
        """Split a complete record."""
        found = (match.groups() for match in self._field.finditer(record))
        return [plain if quoted is None else quoted.replace('""', '"') for quoted, plain in found]


def records(lines: Iterable[str | Fault], separator: str, quotes: Quotes) -> Iterator[list[str] | Fault]:
    """Yield the fields of each record, the header first, and a Fault in place of what cannot be read.

    A record is a line, so no line is taken for a part of another one; with `multiline`, a quoted field may go on in the
    next lines, and Faults have their line. A record has as many fields as the header, or is a Fault.
    """
    grammar, ahead, rest = _Grammar(separator), deque[str | Fault](), iter(lines)
    number, width = 0, None
    while (line := ahead.popleft() if ahead else next(rest, None)) is not None:
        number += 1
        more: Sequence[str | Fault] = ()
        found = _record(line, grammar, separator, quotes)
        if found is None and isinstance(line, str):
            more = _continued(line, ahead, rest, grammar, width)
            found = _joined([line, *more], grammar) if more else Fault(_MALFORMED)
            for _ in more:
                ahead.popleft()
        if more and quotes != "multiline":
            yield from [Fault(_LINE_END)] * (1 + len(more))
        elif isinstance(found, list):
            width = width or len(found)
            wrong = f"{len(found)} columns where the header has {width}"
            yield found if len(found) == width else Fault(wrong, line=number)
        elif found is not None:
            yield found._replace(line=number)
        number += len(more)


def _record(line: str | Fault, grammar: _Grammar, separator: str, quotes: Quotes) -> list[str] | Fault | None:
    """Return the fields of a line; None if the last one does not end on it."""
    if isinstance(line, Fault) or not line:
        return line or Fault("a blank line")
    if quotes == "none" or '"' not in line:
        return line.split(separator)
    ends = grammar.ends(line)
    return grammar.fields(line) if ends else Fault(_MALFORMED) if ends is None else None


def _text(line: str | Fault) -> str:
    return line.text if isinstance(line, Fault) else line


def _joined(lines: Sequence[str | Fault], grammar: _Grammar) -> list[str] | Fault:
    faults = [line for line in lines if isinstance(line, Fault)]
    return faults[0] if faults else grammar.fields("\n".join(map(_text, lines)))


def _continued(
    first: str, ahead: deque[str | Fault], rest: Iterator[str | Fault], grammar: _Grammar, width: int | None
) -> list[str | Fault]:
    """Return the lines that complete a record whose last field does not end on its first line.

    Reads them from `rest` into `ahead`. Empty if they do not, or not to `width` fields: then a quotation mark is wrong.
    """
    lines, size = list[str | Fault](), len(first)
    while size <= LONGEST_FIELD:
        if len(lines) == len(ahead):
            ahead.extend(islice(rest, 1))
        if len(lines) == len(ahead):
            break
        lines.append(ahead[len(lines)])
        line = _text(lines[-1])
        size += 1 + len(line)
        if (ends := grammar.ends(f'"{line}')) is None:  # as if its first field began here
            break
        if ends:
            record = "\n".join([first, *map(_text, lines)])
            return lines if len(grammar.fields(record)) == width else []
    return []
