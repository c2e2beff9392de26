"""Generation of target sequences."""
