"""Lines of a file or of stdin, as soon as they are available."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from transformer.core.errors import UserError

_BLOCK = 1 << 16  # maximum bytes of input answered in one batch


def available_lines(path: Path | None) -> Iterator[list[str]]:
    """Yield lists of lines as they arrive: one by one from a terminal or a slow pipe, block by block from a file."""
    if path is None or path == Path("-"):
        yield from _decoded(sys.stdin.buffer, "stdin")
        return
    try:
        with path.open("rb") as stream:
            yield from _decoded(stream, str(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; give a UTF-8 text file") from error


def _decoded(stream: IO[bytes], name: str) -> Iterator[list[str]]:
    number = 0
    for lines in _blocks(stream):
        texts = []
        for line in lines:
            number += 1
            try:
                texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"))
            except UnicodeDecodeError as error:
                raise UserError(f"{name}, line {number}: not UTF-8 ({error.reason}); convert it first") from error
        yield texts


def _blocks(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the complete lines that can be read now; waits only when there are none."""
    rest = b""
    while block := stream.read1(_BLOCK):  # type: ignore[attr-defined]  # buffered binary streams have it
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]
