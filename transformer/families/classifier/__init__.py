"""Models that predict a text's class."""
