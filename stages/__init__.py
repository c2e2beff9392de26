"""One thin script a stage: `python -m stages.NAME TASK`."""

from transformer.code import code_at_start

code_at_start()  # before anything else is loaded: what runs is what was hashed
