"""BPE and Unigram: lossless, deterministic, and learned from words as in the papers."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.sentences import sample_sentences
from transformer.core.errors import UserError
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.vocabulary import BYTES, WORD_SPECIALS, Vocabulary

TRAIN = {"bpe": train_bpe, "unigram": train_unigram}
KINDS = pytest.mark.parametrize("kind", TRAIN)


@cache
def trained(kind: str, *, byte_fallback: bool) -> Vocabulary:
    return TRAIN[kind](sample_sentences(), min_frequency=1, max_size=700, byte_fallback=byte_fallback)


def pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    (ids,) = vocabulary.encode([text])
    return [str(vocabulary.tokenizer.id_to_token(i)) for i in ids[1:-1]]


def again(vocabulary: Vocabulary, text: str) -> str:
    (ids,) = vocabulary.encode([text])
    return vocabulary.decode(ids.tolist())


ANY = st.text(st.characters(exclude_categories=["Cs"]))
PIECES = [
    *(" ", "  ", "\u2581", "\ufdd0", "0", "<unk>", "<eos>", "<0x41>"),
    *("der", "Hund", ".", "👩\u200d👧", "e\u0301"),
]
TRICKY = st.lists(st.sampled_from(PIECES)).map("".join)


@KINDS
@settings(deadline=None, max_examples=300)
@given(text=ANY | TRICKY)
def test_with_bytes_any_text_comes_back(kind: str, text: str) -> None:
    vocabulary = trained(kind, byte_fallback=True)
    (ids,) = vocabulary.encode([text])
    assert not {vocabulary.pad_id, vocabulary.unknown_id, vocabulary.begin_id, vocabulary.end_id} & {*ids[1:-1]}
    assert vocabulary.decode(ids.tolist()) == text


@KINDS
def test_an_unknown_character_is_unknown(kind: str) -> None:
    vocabulary = trained(kind, byte_fallback=False)
    assert pieces(vocabulary, "der \u2581 Hund")[:3] == ["▁der", "▁", WORD_SPECIALS.unknown]
    assert again(vocabulary, "der 你 Hund") == "der <unk> Hund"


@KINDS
def test_words_punctuation_and_numbers_are_never_in_one_piece(kind: str) -> None:
    texts = ["ab1.c (d)."] * 50
    vocabulary = TRAIN[kind](texts, min_frequency=1, max_size=100, byte_fallback=False)
    assert pieces(vocabulary, "ab1.c (d).") == ["▁ab", "1", ".", "c", "▁(", "d", ")."]
    # a frequent word that only ends lines is a piece too
    vocabulary = TRAIN[kind](["hello world"] * 20, min_frequency=1, max_size=40, byte_fallback=False)
    assert pieces(vocabulary, "hello world") == ["▁hello", "▁world"]


@KINDS
@pytest.mark.parametrize(
    ("byte_fallback", "expected"), [(False, [WORD_SPECIALS.unknown]), (True, ["<0xC3>", "<0xA9>"])]
)
def test_rare_characters_are_left_out(kind: str, byte_fallback: bool, expected: list[str]) -> None:
    texts = ["ein Hund"] * 10 + ["ein Hénd"]
    vocabulary = TRAIN[kind](texts, min_frequency=2, max_size=300, byte_fallback=byte_fallback)
    assert pieces(vocabulary, "é") == ["▁", *expected]


@KINDS
def test_size(kind: str) -> None:
    assert trained(kind, byte_fallback=True).size == 700
    names = [trained(kind, byte_fallback=True).tokenizer.id_to_token(i) for i in range(4 + 256)]
    assert names == [*WORD_SPECIALS, *BYTES]
    with pytest.raises(UserError, match=r"vocab\.max_size is 20, but .* alone take \d+: raise it"):
        TRAIN[kind](sample_sentences(), min_frequency=1, max_size=20, byte_fallback=False)


@KINDS
@pytest.mark.parametrize("text", ["", "\u2585\u2585 \u2585", "\0\0", "a\tb", "x" * 5000])
def test_odd_training_texts(kind: str, text: str) -> None:
    vocabulary = TRAIN[kind]([text, "a b", "a b"], min_frequency=1, max_size=50, byte_fallback=False)
    assert again(vocabulary, text) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_the_same_bytes_in_every_process_with_any_number_of_threads(kind: str, tmp_path: Path) -> None:
    """The library's own trainers of Unigram and WordPiece give others in each process, because of its hash seeds."""
    module, given, option = "subwords", "sample_sentences()", "byte_fallback=True"
    if kind == "wordpiece":
        module, given, option = "vocabulary_training", "lambda: iter(sample_sentences())", "lowercase=True"
    code = (
        "import sys; from pathlib import Path; from tests.data.sentences import sample_sentences;"
        f"from transformer.data.{module} import train_{kind} as train;"
        f"train({given}, min_frequency=2, max_size=600, {option}).save(Path(sys.argv[1]))"
    )
    contents = set()
    for number in (1, 3):
        path = tmp_path / f"{number}.json"
        threads = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONHASHSEED"), str(number))
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=os.environ | threads)
        contents.add(path.read_bytes())
    assert len(contents) == 1
