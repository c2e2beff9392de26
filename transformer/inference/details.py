"""What a served model tells besides its answer, for people who try it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.data.vocabulary import PREFIX, SPACE, Vocabulary


def described(vocabulary: Vocabulary, ids: Sequence[int], text: str = "") -> list[dict[str, Any]]:
    """Describe tokens: their `text`, if they are `joined` to the one before, and if they are `unknown`.

    ids: without begin and end token; text: what they were encoded from, to show the words that are unknown.
    """
    spaced = SPACE in vocabulary.tokenizer.get_vocab()
    offsets = vocabulary.tokenizer.encode(text, add_special_tokens=False).offsets
    unfamiliar = {*vocabulary.unfamiliar_ids.tolist()}
    found = []
    for place, (number, entry) in enumerate(zip(ids, vocabulary.entries(ids), strict=True)):
        joined = not entry.startswith(SPACE) if spaced else entry.startswith(PREFIX)
        shown = entry.removeprefix(SPACE).removeprefix(PREFIX)
        if number == vocabulary.unknown_id and text:
            shown = text[slice(*offsets[place])].strip(f" {SPACE}")
        found.append({"text": shown, "joined": joined and place > 0, "unknown": int(number) in unfamiliar})
    return found


def rounded(values: Any, digits: int = 6) -> Any:
    """Return numbers, of any shape, as JSON takes them."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()
