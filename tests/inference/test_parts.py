"""Where an over-long source is split: at the ends of sentences, else between words."""

from collections.abc import Callable

import numpy as np
import pytest

from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.vocabulary import SPACE, Vocabulary
from transformer.data.vocabulary_training import train_wordpiece, word_vocabulary
from transformer.families.seq2seq.decode import fit_sources

TEXT = "der kleine Hund sieht die alte Brücke. das Kind trägt einen (sehr grünen) Hut."
TOKENS = "der kleine Hund sieht die alte Brücke . das Kind trägt einen ( sehr grünen ) Hut ."


def parts(vocabulary: Vocabulary, text: str, positions: int) -> list[list[str]]:
    """The pieces of each part."""
    (ids,) = vocabulary.encode([text])
    found, owners = fit_sources([ids], positions, "split", vocabulary)
    assert np.concatenate([part[1:-1] for part in found]).tolist() == ids[1:-1].tolist() and set(owners) == {0}
    assert all(len(part) <= positions for part in found)
    return [vocabulary.entries(part[1:-1]) for part in found]


@pytest.mark.parametrize("train", [train_bpe, train_unigram])
@pytest.mark.parametrize("positions", [10, 12, 15])
def test_a_part_of_subwords_begins_with_a_word(train: Callable[..., Vocabulary], positions: int) -> None:
    texts = [TEXT] * 9 + ["der Hund", "das Kind"]
    found = parts(train(texts, min_frequency=3, max_size=60, byte_fallback=False), TEXT, positions)
    assert len(found) > 1 and all(part[0].startswith(SPACE) for part in found)


def test_a_part_ends_with_a_sentence_that_fits() -> None:
    vocabulary = train_bpe([TEXT] * 9, min_frequency=1, max_size=200, byte_fallback=False)
    first, second = parts(vocabulary, TEXT, 17)
    assert first[-1].endswith("Brücke.") or first[-1] == "."
    assert second[0] == f"{SPACE}das"


@pytest.mark.parametrize("positions", range(5, 13))
def test_a_part_of_words_begins_with_neither_a_full_stop_nor_a_closing_bracket(positions: int) -> None:
    vocabulary = word_vocabulary([TOKENS], min_frequency=1, max_size=100)
    found = parts(vocabulary, TOKENS, positions)
    assert not {part[0] for part in found} & {".", ")", "sehr"}
    assert any(part[-1] == "." for part in found[:-1])


def test_a_part_of_wordpieces_begins_with_a_word() -> None:
    vocabulary = train_wordpiece(lambda: iter([TOKENS, "Hündchen"]), min_frequency=1, max_size=60, lowercase=False)
    found = parts(vocabulary, TOKENS, 16)
    assert not [part[0] for part in found if part[0].startswith("##") or part[0] in ".)"]


def test_a_script_without_spaces_is_split_after_its_full_stops() -> None:
    text = "小狗看见旧桥。孩子戴着绿色的帽子。他们在公园里玩。"
    vocabulary = train_bpe([text] * 5, min_frequency=1, max_size=28, byte_fallback=False)
    assert {part[-1] for part in parts(vocabulary, text, 14)} == {"。"}


def test_a_word_longer_than_the_positions_is_split_all_the_same() -> None:
    vocabulary = train_bpe(["a b", *"abc"], min_frequency=1, max_size=12, byte_fallback=False)
    assert [len(part) for part in parts(vocabulary, "b" * 20, 9)] == [7, 7, 6]
