"""The trainer: configs, tensors and callbacks; nothing of DVC, MLflow or files other than the model's own."""
