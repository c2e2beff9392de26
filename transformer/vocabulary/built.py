"""A vocabulary written by another task's build_vocab."""

import json
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.repository import hint_of_clone, refuse_outside_of_clone
from transformer.encoded.vocabulary import Vocabulary
from transformer.text.pretokenize import PRETOKENIZERS, PreTokenizerParams, read_pretokenizers

_MODELS = {"word": "WordLevel", "wordpiece": "WordPiece", "bpe": "BPE", "unigram": "Unigram"}


def built_vocabulary(folder: Path, side: str, kind: str, pretokenizer: PreTokenizerParams) -> Vocabulary:
    """Open a side's vocabulary. Raises UserError if the folder has none, or its texts were split differently.

    pretokenizer: how the texts to encode were split.
    """
    refuse_outside_of_clone(folder)
    path = folder / side / "tokenizer.json"
    if not path.is_file():
        raise UserError(
            f"no vocabulary at {path}: set vocab.path to what a task's build_vocab wrote, such as data/language/vocab"
            f"{hint_of_clone(folder)}"
        )
    vocabulary = Vocabulary.load(path)
    found = json.loads(vocabulary.tokenizer.to_str())["model"]["type"]
    if found != _MODELS[kind]:
        raise UserError(f"{path} is a {found} vocabulary, and vocab.kind is `{kind}`: set it to the kind of the other")
    if (folder / PRETOKENIZERS).is_file():
        their = read_pretokenizers(folder, side)[side]
        for name, own in pretokenizer:
            given = getattr(their, name)
            if own != given:
                raise UserError(
                    f"tokenize.{name} is {own}, but the texts of the vocabulary {folder} were split with {given}: set"
                    " it to this value"
                )
    return vocabulary
