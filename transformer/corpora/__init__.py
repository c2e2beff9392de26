"""Corpus sources: the Hugging Face Hub, local files, and the project's samples."""
