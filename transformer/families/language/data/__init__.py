"""Windows of encoded texts, and token masking."""
