"""export: writes the model as a self-contained folder, verified against what evaluate wrote.

data/TASK, models/TASK/trained, reports/TASK -> models/TASK/bundle
"""

import transformer.core.start  # noqa: F401  # first
from transformer.workflow.stage import main

if __name__ == "__main__":
    main("export")
