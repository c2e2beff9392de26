"""The page of a result."""
