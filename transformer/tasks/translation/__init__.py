"""Translation of one language into another."""
