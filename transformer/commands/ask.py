"""`transformer translate`, `classify`, `fill`, `generate` and `attention`: what a model answers and attends to."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transformer.core.errors import UserError, printable
from transformer.core.files import read_table
from transformer.core.task import Answering, families, task_names

if TYPE_CHECKING:  # answers need no matplotlib
    from transformer.reporting.attention_maps import Drawing, Weights

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


def ask(arguments: Namespace) -> None:
    """Answer the texts given as arguments, in a file or on stdin, one line per text. Raises UserError."""
    if arguments.texts and arguments.file:
        raise UserError("give texts or --file, not both")
    for number, text in enumerate(arguments.texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"text {number} is not UTF-8: convert it first, or give a file that is") from error
    model = opened(arguments)
    if model.family != arguments.family:
        own = " or ".join(f"`transformer {name}`" for name, _ in families()[model.family].commands)
        raise UserError(f"{arguments.model} is a model for {own}: choose another with --model")
    options = families()[model.family].command_line()
    _answer(arguments, options.answering(model, arguments))


def opened(arguments: Namespace) -> Any:
    """Open the model given as argument, with a warning if it is not the workspace's result. Raises UserError."""
    from transformer.inference.bundle import open_bundle  # imports torch, which takes seconds

    model = open_bundle(arguments.model, arguments.device, getattr(arguments, "engine", None))
    _warn_of_another_result(arguments.model)
    return model


def _warn_of_another_result(model: Path) -> None:
    """Warn when the workspace's own model differs from dvc.lock, as after `git checkout` without `dvc checkout`."""
    root, given = Path.cwd(), model.resolve()
    if not (root / "dvc.lock").is_file():
        return
    from transformer.workflow.dvc import not_as_locked
    from transformer.workflow.pipeline import bundle_path, converted_path
    from transformer.workflow.results import folder_is_as_locked

    outputs = [path for task in task_names() for path in (bundle_path(task), converted_path(task))]
    own = next((path for path in outputs if (root / path).resolve() in (given, given.parent)), None)
    if own and not folder_is_as_locked(root, own):
        print(f"warning: {not_as_locked(root, own)}", file=sys.stderr)


def _answer(arguments: Namespace, answering: Answering) -> None:
    """Print the answers as they become available, then the notes of all on stderr."""
    from transformer.inference.notes import Tally

    tally = Tally()
    for texts in [arguments.texts] if arguments.texts else available_lines(arguments.file):
        for answer in answering(texts):
            print(*(map(_on_a_terminal, answer.lines) if sys.stdout.isatty() else answer.lines), sep="\n")
            tally.add(answer.notes)
        sys.stdout.flush()
    for line in tally.lines():
        print(f"note: {printable(line)}", file=sys.stderr)


def _on_a_terminal(line: str) -> str:
    """Escape what would act on a terminal; tabs separate columns."""
    return "\t".join(map(printable, line.split("\t")))


_SHADES = " ░▒▓█"
_SHOWN = 5  # heads
_LABEL = 16  # maximum characters of a token's label


def show_attention(opened: Callable[[], Any], arguments: Namespace) -> None:
    """Print or save one map of the model that `opened` loads, as the `arguments` ask. Raises UserError."""
    from transformer.reporting.attention_maps import attention_figure
    from transformer.reporting.style import save

    if arguments.output and arguments.output.suffix not in (".png", ".svg"):
        raise UserError(f"--output {arguments.output} must end in .png or .svg")
    model = opened()
    if not hasattr(model, "model"):
        raise UserError(f"{arguments.model} is a converted model, and attention maps need PyTorch: name the bundle")
    found = families()[model.family].attention_drawings(model, arguments.text, arguments.layers)
    drawings = {drawing.name: drawing for drawing in found}
    if not drawings:
        raise UserError(f"the model in {arguments.model} has no attention")
    name = arguments.map or next(iter(drawings))
    if name not in drawings:
        raise UserError(f"the model has no map {name!r}: --map is one of {', '.join(drawings)}")
    drawing = drawings[name]
    if arguments.output is None:
        for line in (*text_map(drawing), *heads_that_matter(Path(arguments.model))):
            print(line)
        return
    save(arguments.output, drawing.title, lambda: attention_figure(drawing))
    print(f"{arguments.output}: {name}")


def heads_that_matter(bundle: Path) -> Iterator[str]:
    """Yield a line with the heads of a workspace's bundle whose removal costs most, if `evaluate` measured it."""
    task = bundle.absolute().parent
    table = task.parent.parent / "reports" / task.name / "tables" / "heads.tsv"
    if not table.is_file():
        return
    rows = [row for row in read_table(table) if float(row["low"]) > 0]
    worst = sorted(rows, key=lambda row: -float(row["cost"]))[:_SHOWN]
    named = "; ".join(f"{row['attention']}, head {row['head']} ({float(row['cost']):.3g})" for row in worst)
    yield f"costs most without: {printable(named) or 'no head, beyond chance'} (tables/heads.tsv has all)"


def text_map(drawing: "Drawing") -> Iterator[str]:
    """Yield the lines of a drawing: panel by panel, one line per query, darker for larger weights.

    Columns are numbered, with a legend first; each line ends with the key of the largest weight.
    """
    from transformer.reporting.style import plain

    yield from drawing.title.splitlines()
    keys = [plain(token, _LABEL) for token in drawing.keys.tokens]
    yield f"{drawing.keys.label}: " + "  ".join(f"{number} {key}" for number, key in enumerate(keys, start=1))
    queries = [plain(token, _LABEL) for token in drawing.queries.tokens]
    width = max(map(len, (*queries, "")))
    for name, weights in drawing.panels.items():
        yield ""
        yield name
        yield " " * width + "".join(f"{number:>3}" for number in range(1, len(keys) + 1))
        for query, row in zip(queries, weights, strict=True):
            best = int(row.argmax())
            yield f"{query:>{width}}{_shaded(row)}  {keys[best]} {row[best]:.2f}"


def _shaded(row: "Weights") -> str:
    """Format one query's weights, three columns per key."""
    steps = [min(int(weight * len(_SHADES)), len(_SHADES) - 1) for weight in row]
    return "".join(" " + _SHADES[step] * 2 for step in steps)
