"""Corpus sources: the Hugging Face Hub, local files, and the built-in sample grammars."""
