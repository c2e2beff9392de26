"""Sentiment of reviews: negative or positive."""
