"""Errors that are not bugs in the code, and the text of messages."""

import re

_NO_MEMORY = ("DefaultCPUAllocator", "Storage size calculation overflowed", "MPS backend out of memory")
"""Parts of torch's RuntimeError messages for a tensor that does not fit.

On CPUs and Apple's GPUs it has no exception class for this.
"""
OUT_OF_MEMORY = "out of memory: lower the batch size, the model's size or its max_length, or close other programs"


_ACTING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line ends, changes of direction, and halves of surrogate pairs, as in file names."""


def printable(text: str) -> str:
    """Escape what would act on a terminal, end the line or not be printed at all in names from outside.

    Every message passes it: labels, columns and file names may contain anything.
    """
    return _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_MARKUP = re.compile(r"[\\`*~<>&|]|\](?=\()|(?<![^\W_])_|_(?![^\W_])")  # not the _ of a parameter's name


def in_markdown(text: str) -> str:
    """Escape a text from outside, such as a label, so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


class UserError(Exception):
    """An error that the user can fix: the message is one line that says what happened, where, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def is_out_of_memory(error: BaseException) -> bool:
    """True if an error means out of memory: torch's on GPUs and CPUs, or Python's."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def unusable(error: OSError) -> str:
    """Explain why a file cannot be accessed, such as missing permission or a name that is too long."""
    return printable(f"{error.filename} cannot be used ({error.strerror}): check its path and permissions")
