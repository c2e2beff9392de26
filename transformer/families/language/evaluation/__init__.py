"""How well a language model predicts texts."""
