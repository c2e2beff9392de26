"""Language models of reviews: what the words of one tell of each other."""
