"""Reviews, negative or positive."""
