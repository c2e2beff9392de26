"""One language into another."""

HEADLINE = ("bleu", "chrf", "perplexity")
