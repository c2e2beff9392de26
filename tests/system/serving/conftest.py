"""The exported models of tests/inference."""

from tests.inference.conftest import bundles

__all__ = ["bundles"]
