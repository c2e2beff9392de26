"""The token that hides another one."""

from transformer.encoded.vocabulary import Vocabulary

MASK = "[MASK]"


def mask_id(vocabulary: Vocabulary) -> int:
    """The id of the vocabulary's [MASK]; of one without, the id after its last."""
    found = vocabulary.tokenizer.token_to_id(MASK)
    return vocabulary.size if found is None else int(found)
