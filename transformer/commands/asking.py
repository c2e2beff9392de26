"""Inference commands for an exported model: `transformer translate`, `classify`, `fill` and `generate`."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from transformer.commands.lines import available_lines
from transformer.core.errors import UserError
from transformer.core.task import import_family
from transformer.registry import TASKS

_WORDS_SHOWN = 10


def ask(arguments: Namespace) -> None:
    """Answer the texts given as arguments, in a file or on stdin, one line per text. Raises UserError."""
    if arguments.texts and arguments.file:
        raise UserError("give texts or --file, not both")
    model = opened(arguments)
    if model.family != arguments.family:
        own = " or ".join(f"`transformer {name}`" for name, _ in import_family(model.family, "options").COMMANDS)
        raise UserError(f"{arguments.model} is a model for {own}: choose another with --model")
    options = import_family(model.family, "options")
    _answer(arguments, options.answering(model, arguments))
    if arguments.texts:
        for line in _notes(*options.read_by(model, arguments.texts)):
            print(f"note: {line}", file=sys.stderr)


def _notes(vocabulary: Any, texts: list[str], most: int | None) -> Iterator[str]:
    """Yield warnings about parts of texts that the model does not read; most: its maximum number of tokens, if any."""
    for number, ids in enumerate(vocabulary.encode(texts), start=1):
        if most is not None and len(ids) > most:
            which = f"text {number}" if len(texts) > 1 else "the text"
            yield f"{which} has {len(ids) - 2} tokens, of which the network reads only the first {most - 2}"
    # A word vocabulary has one token per word.
    read = texts if most is None else [" ".join(text.split()[: most - 2]) for text in texts]
    if unknown := _unknown(vocabulary, read):
        yield f"words that the vocabulary lacks: {', '.join(unknown)}"


def _unknown(vocabulary: Any, tokens: list[str]) -> list[str]:
    """Return out-of-vocabulary words of a word vocabulary, at most a few; subwords can spell any."""
    words = dict.fromkeys(word for text in tokens for word in text.split())
    ids = vocabulary.encode([*words])
    found = [word for word, each in zip(words, ids, strict=True) if each[1:-1].tolist() == [vocabulary.unknown_id]]
    return [*found[:_WORDS_SHOWN], *(["..."] if len(found) > _WORDS_SHOWN else [])]


def opened(arguments: Namespace) -> Any:
    """Open the model given as argument, with a warning if it is not the workspace's result. Raises UserError."""
    from transformer.export.bundle import open_bundle  # imports torch, which takes seconds

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

    outputs = [path for task in TASKS for path in (bundle_path(task), converted_path(task))]
    own = next((path for path in outputs if (root / path).resolve() in (given, given.parent)), None)
    if own and not folder_is_as_locked(root, own):
        print(f"warning: {not_as_locked(root, own)}", file=sys.stderr)


def _answer(arguments: Namespace, answer: Callable[[list[str]], Iterable[str]]) -> None:
    """Print the answers as they become available, one line per text."""
    if arguments.texts:
        for line in answer(arguments.texts):
            print(line)
        return
    for chunk in available_lines(arguments.file):
        for line in answer(chunk):
            print(line)
        sys.stdout.flush()
