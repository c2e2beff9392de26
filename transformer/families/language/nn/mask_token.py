"""The mask token."""

from transformer.encoded.vocabulary import Vocabulary

MASK = "[MASK]"


def mask_id(vocabulary: Vocabulary) -> int:
    """Return the id of the vocabulary's [MASK], or the id after its last if it has none."""
    found = vocabulary.tokenizer.token_to_id(MASK)
    return vocabulary.size if found is None else int(found)
