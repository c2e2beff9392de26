"""Any number of German-English caption pairs, generated from a grammar and a seed."""
