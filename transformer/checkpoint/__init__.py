"""Trained models on disk, and the device that they compute on."""
