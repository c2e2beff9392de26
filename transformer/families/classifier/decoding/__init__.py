"""Prediction of class probabilities."""
