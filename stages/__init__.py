"""One thin script for each stage: `python -m stages.NAME TASK`."""
