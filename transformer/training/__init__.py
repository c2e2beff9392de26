"""The trainer: configs, tensors and callbacks. It knows nothing of DVC or MLflow, and no files but the model's own."""
