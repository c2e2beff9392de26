"""Filling gaps, continuing texts, and scoring."""
