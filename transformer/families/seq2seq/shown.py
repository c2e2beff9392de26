"""What is shown of this family's results and models, for those who load nothing else of it."""

HEADLINE = ("bleu", "chrf", "perplexity")
"""The metrics that a summary shows, the main one first."""
ANSWERS = (("string", "translation"),)
"""MLflow's types and the names of the columns of a model's answers."""
