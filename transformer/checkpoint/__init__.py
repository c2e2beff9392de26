"""Trained models on disk, and the device they run on."""
