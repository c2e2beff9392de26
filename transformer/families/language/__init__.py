"""Language models: masked (BERT) and causal (GPT)."""
