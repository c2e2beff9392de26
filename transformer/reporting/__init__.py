"""Figures that explain: of a trained model, and of the code itself."""
