"""Trained models on disk, and their device."""
