"""From sentences to ids and back: pre-tokenizers, vocabularies, the encoded store, batches."""
