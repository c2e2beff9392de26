"""Raw text: cleaning, pre-tokenizers, and ordered parallel processing."""
