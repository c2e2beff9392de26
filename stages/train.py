"""train: trains a model on the encoded store.

data/TASK/encoded, data/TASK/vocab -> models/TASK/trained; training.json and two tables in reports/TASK
"""

import transformer.core.start  # noqa: F401  # first
from stages.allocator import take_tcmalloc

if __name__ == "__main__":
    take_tcmalloc()  # before torch is loaded

from transformer.workflow.stage import main

if __name__ == "__main__":
    main("train")
