"""Raw text: cleaning, pre-tokenization, and ordered parallel processing."""
