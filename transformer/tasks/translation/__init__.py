"""One language into another."""
