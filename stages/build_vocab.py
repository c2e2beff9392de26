"""build_vocab: builds one vocabulary per side and the encoded store from the tokens.

data/TASK/tokens -> data/TASK/vocab, data/TASK/encoded, reports/TASK/vocabulary.json
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("build_vocab")
