"""From a model's logits to answers, one folder a family."""
