"""The report of a result: one HTML page that needs nothing else."""
