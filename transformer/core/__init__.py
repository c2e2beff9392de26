"""Shared by all stages."""
