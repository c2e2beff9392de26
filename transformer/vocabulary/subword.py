"""Lossless subword tokenizers over raw text: what BPE and Unigram vocabularies share.

Every space becomes U+2581 (▁), and one more stands before the text, so that a word looks the same at its beginning
(Kudo and Richardson 2018). Nothing is normalized away: decoding gives back the text, spaces and all.
"""

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from transformer.encoded.vocabulary import SPACE, WORD_SPECIALS, Vocabulary

# A text may hold the character ▁ itself. Noncharacters stand for it and for themselves: Unicode keeps them for a
# program's own use, so no real text has them, and yet a text that does comes back as it was.
_LOW_LINE, _ESCAPE = "\ufdd0", "\ufdd1"
_ESCAPES = ((_ESCAPE, f"{_ESCAPE}1"), (_LOW_LINE, f"{_ESCAPE}0"), (SPACE, _LOW_LINE))

# Letters with their marks, numbers, and all else are pieces of their own, each with the space before it: "dog" is the
# same piece in "dog", "dog." and "dog's", as in SentencePiece, whose pieces don't mix scripts. No piece can spell a
# special token or the name of a byte, since these mix them.
_WORDS = Regex(rf"{SPACE}?(?:[\p{{L}}\p{{M}}]+|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]+)|{SPACE}")


def lossless_vocabulary(model: models.Model) -> Vocabulary:
    """A vocabulary around a BPE or Unigram model that holds the four special tokens.

    A text whose characters the model knows comes back unchanged from decode(encode(text)); with byte pieces, any text.
    """
    tokenizer = Tokenizer(model)
    prepare_text(tokenizer)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
            *(decoders.Replace(escaped, character) for character, escaped in reversed(_ESCAPES)),
        ]
    )
    tokenizer.add_special_tokens(list(WORD_SPECIALS))
    return Vocabulary(tokenizer)


def prepare_text(tokenizer: Tokenizer) -> None:
    """Give a tokenizer the normalizer and the splitting into words."""
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(character, escaped) for character, escaped in _ESCAPES),
            normalizers.Prepend(SPACE),
            normalizers.Replace(" ", SPACE),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_WORDS, "isolated")
