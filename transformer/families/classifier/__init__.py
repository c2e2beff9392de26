"""Models that name a text's class."""
