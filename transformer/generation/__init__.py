"""Generating text token by token: greedy search, beam search and sampling over any model of a next token."""
