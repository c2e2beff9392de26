"""The report page of a result."""
