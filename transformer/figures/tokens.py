"""Tokens as labels."""

from collections.abc import Iterable

from transformer.encoded.vocabulary import Vocabulary


def token_labels(vocabulary: Vocabulary, ids: Iterable[int]) -> list[str]:
    """The vocabulary's entry of each id, special tokens included."""
    return [str(vocabulary.tokenizer.id_to_token(int(number))) for number in ids]
