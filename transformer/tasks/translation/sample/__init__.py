"""German-English caption pairs of any number, generated from a grammar and a seed."""
