"""Any number of labelled film reviews, generated from a grammar and a seed."""
