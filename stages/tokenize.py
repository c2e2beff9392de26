"""tokenize: splits text into tokens.

data/TASK/corpus -> data/TASK/tokens
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("tokenize")
