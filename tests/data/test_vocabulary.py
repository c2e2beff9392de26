"""Vocabularies: their content, their determinism, and that text is never mistaken for a special token."""

from pathlib import Path

import pytest
from tokenizers import BertWordPieceTokenizer

from transformer.core.errors import UserError
from transformer.data.vocabulary import WORD_SPECIALS, clip
from transformer.data.vocabulary_training import given_wordpiece, train_wordpiece, word_vocabulary

TEXTS = ["a dog and a cat", "a dog runs", "dogs and cats", "<eos> <eos> a"]


def test_word_vocabulary_is_ranked_by_frequency_then_alphabet() -> None:
    vocabulary = word_vocabulary(TEXTS, min_frequency=2, max_size=None)
    entries = vocabulary.tokenizer.get_vocab()
    assert sorted(entries, key=entries.__getitem__) == [*WORD_SPECIALS, "a", "and", "dog"]
    assert word_vocabulary(TEXTS, min_frequency=1, max_size=6).size == 6


def test_a_word_vocabulary_has_no_mask_from_the_texts() -> None:
    """A language model takes the id after the last, and a text that spells `[MASK]` is still text."""
    vocabulary = word_vocabulary(["call [MASK] now"], min_frequency=1, max_size=None)
    assert vocabulary.tokenizer.token_to_id("[MASK]") is None
    found, unknown = vocabulary.encode(["[MASK]", "unknown"])
    assert found.tolist() == unknown.tolist()


def test_a_text_that_spells_a_special_token_is_text() -> None:
    vocabulary = word_vocabulary(TEXTS, min_frequency=1, max_size=None)
    (ids,) = vocabulary.encode(["<bos> <eos> a <pad>"])
    assert not {vocabulary.pad_id, vocabulary.begin_id, vocabulary.end_id} & set(ids[1:-1].tolist())


def test_trained_wordpiece_reads_and_writes_text() -> None:
    texts = ["the playing players played", "players play the game"] * 20
    vocabulary = train_wordpiece(lambda: iter(texts), min_frequency=2, max_size=100, lowercase=True)
    with pytest.raises(UserError, match=r"^vocab\.max_size 9 is too small: special tokens and the texts' \d+ char"):
        train_wordpiece(lambda: iter(texts), min_frequency=2, max_size=9, lowercase=True)
    (ids,) = vocabulary.encode(["The players play"])
    assert vocabulary.decode(ids.tolist()) == "the players play"
    assert vocabulary.unknown_id not in ids


@pytest.mark.parametrize("text", ["schöne mädchen in zürich", "한국어를 씁니다", "हिन्दी में", "ภาษาไทยไม่มีช่องว่าง" * 7])
def test_trained_wordpiece_keeps_accents_vowel_signs_and_long_words(text: str) -> None:
    """BERT takes the former away, and `tokenizers` takes a word of more than 100 characters for unknown."""
    vocabulary = train_wordpiece(lambda: iter([text] * 5), min_frequency=1, max_size=200, lowercase=True)
    (ids,) = vocabulary.encode([text.upper()])
    assert vocabulary.decode(ids.tolist()) == text


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "play", "##ing", "##er", "##s", ",", "é", "e"]


def test_given_wordpiece_is_berts(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    ours = given_wordpiece(tmp_path / "vocab.txt", lowercase=True)
    bert = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=True)
    for text in ("The playing, players", "É zzz the", "", "the,the  PLAYS\u200b\ttheplay", "日本 the"):
        assert ours.encode([text])[0].tolist() == bert.encode(text).ids
    assert (ours.pad_id, ours.begin_id, ours.end_id) == (0, 2, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n", "names 'a' more than once"),
        (b"[PAD]\n[UNK]\na\n", r"lacks \[CLS\], \[SEP\]"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_bad_vocab_txt_is_one_clear_line(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(UserError, match=message):
        given_wordpiece(tmp_path / "vocab.txt", lowercase=True)


def test_clip_keeps_the_end() -> None:
    (ids,) = word_vocabulary(TEXTS, min_frequency=1, max_size=None).encode(["a dog and a cat"])
    assert clip(ids, 4).tolist() == [*ids[:3].tolist(), ids[-1]]
    assert clip(ids, 7) is ids
