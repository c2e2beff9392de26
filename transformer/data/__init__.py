"""From a source's files to the encoded store: corpus, tokens, vocabulary."""
