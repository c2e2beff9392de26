"""Film reviews with a sentiment label, of any number, generated from a grammar and a seed."""
