"""Lossless subword tokenizers over raw text: what BPE and Unigram vocabularies share.

Every space becomes U+2581 (▁), and another one is prepended, so that a word looks the same at the start of a text (Kudo
and Richardson 2018). Nothing is normalized away: decoding restores the text, spaces included.
"""

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from transformer.encoded.vocabulary import SPACE, WORD_SPECIALS, Vocabulary

# A text may contain the character ▁ itself, so it is escaped with noncharacters, which Unicode reserves for internal
# use. They are escaped too, so that even a text that contains them is restored exactly.
_LOW_LINE, _ESCAPE = "\ufdd0", "\ufdd1"
_ESCAPES = ((_ESCAPE, f"{_ESCAPE}1"), (_LOW_LINE, f"{_ESCAPE}0"), (SPACE, _LOW_LINE))

# Letters with their marks, numbers, and everything else are separate pieces, each with the space before it: "dog" is
# the same piece in "dog", "dog." and "dog's", as in SentencePiece, whose pieces do not mix scripts. No piece can spell
# a special token or the name of a byte, since these mix classes.
_WORDS = Regex(rf"{SPACE}?(?:[\p{{L}}\p{{M}}]+|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]+)|{SPACE}")


def lossless_vocabulary(model: models.Model) -> Vocabulary:
    """Make a vocabulary around a BPE or Unigram model that contains the four special tokens.

    decode(encode(text)) restores any text whose characters the model knows; with byte pieces, any text.
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
    """Set the normalizer and the word splitter of a tokenizer."""
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(character, escaped) for character, escaped in _ESCAPES),
            normalizers.Prepend(SPACE),
            normalizers.Replace(" ", SPACE),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_WORDS, "isolated")
