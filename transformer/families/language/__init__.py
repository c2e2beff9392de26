"""Models of texts alone: one that fills gaps (BERT), and one that continues texts (GPT)."""
