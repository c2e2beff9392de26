"""Fixtures of the page tests."""

from tests.browser import browser

__all__ = ["browser"]
