"""The encoder-decoder family: a source sequence in, a target sequence out."""
