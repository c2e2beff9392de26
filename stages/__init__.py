"""One thin script a stage: `python -m stages.NAME TASK`."""
