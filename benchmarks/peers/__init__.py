"""Other implementations of the same models, to compare with ours."""
