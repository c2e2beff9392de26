"""The first thing that a stage script imports: the right Python, and the code as it is before any of it is loaded."""

from transformer.core.interpreter import require_libraries

require_libraries()  # before any of them is imported

from transformer.core.code import code_at_start  # noqa: E402

code_at_start()  # before anything else is loaded: what runs is what was hashed
