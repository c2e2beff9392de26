"""download: reads and validates a source's rows, and writes them in one tracked format.

-> data/TASK/corpus
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("download")
