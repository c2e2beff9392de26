"""What goes wrong through no fault of the code."""

_NO_MEMORY = ("DefaultCPUAllocator", "Storage size calculation overflowed")
"""In the RuntimeErrors of torch for a tensor that does not fit; on CPUs they have no class of their own."""
OUT_OF_MEMORY = "out of memory: lower the batch size, the model's size or its max_length, or close other programs"


class UserError(Exception):
    """Something the user can mend: the message is one line that says what, where and what to do."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory: torch's on GPUs and CPUs, or Python's."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
