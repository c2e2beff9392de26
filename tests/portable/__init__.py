"""Float32 on CPUs has the same bits on every x86-64 processor with AVX2 (docs/design.md)."""
