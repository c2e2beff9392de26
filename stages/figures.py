"""figures: draws what the trained model attends to, and what the code computes.

data/TASK, models/TASK/trained, reports/TASK/history.tsv -> reports/TASK/figures
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("figures")
