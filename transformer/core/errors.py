"""Errors that are not bugs in the code."""

_NO_MEMORY = ("DefaultCPUAllocator", "Storage size calculation overflowed", "MPS backend out of memory")
"""Parts of torch's RuntimeError messages for a tensor that does not fit.

On CPUs and Apple's GPUs it has no exception class for this.
"""
OUT_OF_MEMORY = "out of memory: lower the batch size, the model's size or its max_length, or close other programs"


class UserError(Exception):
    """An error that the user can fix: the message is one line that says what happened, where, and what to do."""


def is_out_of_memory(error: BaseException) -> bool:
    """True if an error means out of memory: torch's on GPUs and CPUs, or Python's."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def unusable(error: OSError) -> str:
    """Explain why a file cannot be accessed, such as missing permission or a name that is too long."""
    return f"{error.filename} cannot be used ({error.strerror}): check its path and permissions"
