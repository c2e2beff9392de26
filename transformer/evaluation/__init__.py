"""How good answers are, and how sure that is: what all families share."""
