"""Implementations of the console commands."""
