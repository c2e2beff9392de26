"""convert: writes the exported model in other formats, each verified against it.

models/TASK/bundle, reports/TASK/predictions.tsv -> models/TASK/converted, reports/TASK/conversion.json
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("convert")
