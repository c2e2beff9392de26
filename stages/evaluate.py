"""evaluate: scores the model on the validation and test splits, with confidence intervals and error tables.

data/TASK, models/TASK/trained -> reports/TASK/evaluation.json, predictions.tsv, plots and tables
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("evaluate")
