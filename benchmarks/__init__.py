"""Side-by-side benchmarks."""
