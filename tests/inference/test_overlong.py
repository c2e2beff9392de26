"""Sources longer than the model's positions: cut, refused, or split at ends of sentences, else between words."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.inference.models import run, trained
from transformer.core.errors import UserError
from transformer.data.store import Ids
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.vocabulary import SPACE, Vocabulary
from transformer.data.vocabulary_training import word_vocabulary
from transformer.families.seq2seq.decode import fit_sources


def source(length: int) -> Ids:
    return np.concatenate(([2], np.random.default_rng(length).integers(4, 30, size=length - 2), [3]))


@pytest.mark.parametrize("length", [3, 31, 32, 33, 62, 63, 500])
def test_parts_hold_every_token_once_and_fit(length: int) -> None:
    parts, owners = fit_sources([source(5), source(length)], 32, "split", None)
    mine = [part for part, owner in zip(parts, owners, strict=True) if owner == 1]
    assert np.concatenate([part[1:-1] for part in mine]).tolist() == source(length)[1:-1].tolist()
    assert all(len(part) <= 32 and part[0] == 2 and part[-1] == 3 for part in mine)
    assert len(mine) == -(-(length - 2) // 30)


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_a_split_source_is_translated_in_parts(method: str) -> None:
    model, long = trained("post"), source(80)
    parts, _ = fit_sources([long], 32, "split", None)
    (whole,) = run(model, [long], method=method, long_sources="split")
    alone = [run(model, [part], method=method)[0] for part in parts]
    assert whole[0].ids == [token for found in alone for token in found[0].ids]
    assert whole[0].log_probability == pytest.approx(sum(found[0].log_probability for found in alone), abs=1e-9)


def test_a_cut_source_is_translated_as_its_beginning() -> None:
    model, long = trained("post"), source(80)
    assert run(model, [long]) == run(model, [np.concatenate((long[:31], long[-1:]))])


def test_refusing_says_which_text_and_what_to_do() -> None:
    with pytest.raises(UserError, match=r"text 2 has 33 tokens and the model 32 positions: .*long_sources"):
        run(trained("post"), [source(32), source(33)], long_sources="refuse")


TEXT = "der kleine Hund sieht die alte Brücke. das Kind trägt einen (sehr grünen) Hut."
TOKENS = "der kleine Hund sieht die alte Brücke . das Kind trägt einen ( sehr grünen ) Hut ."


def pieces(vocabulary: Vocabulary, text: str, positions: int) -> list[list[str]]:
    """The pieces of each part."""
    (ids,) = vocabulary.encode([text])
    found, owners = fit_sources([ids], positions, "split", vocabulary)
    assert np.concatenate([part[1:-1] for part in found]).tolist() == ids[1:-1].tolist() and set(owners) == {0}
    assert all(len(part) <= positions for part in found)
    return [vocabulary.entries(part[1:-1]) for part in found]


@pytest.mark.parametrize("train", [train_bpe, train_unigram])
@pytest.mark.parametrize("positions", [10, 15])
def test_a_part_of_subwords_begins_with_a_word(train: Callable[..., Vocabulary], positions: int) -> None:
    texts = [TEXT] * 9 + ["der Hund", "das Kind"]
    found = pieces(train(texts, min_frequency=3, max_size=60, byte_fallback=False), TEXT, positions)
    assert len(found) > 1 and all(part[0].startswith(SPACE) for part in found)


@pytest.mark.parametrize("positions", range(5, 13))
def test_a_part_of_words_begins_with_neither_a_full_stop_nor_a_closing_bracket(positions: int) -> None:
    vocabulary = word_vocabulary([TOKENS], min_frequency=1, max_size=100)
    found = pieces(vocabulary, TOKENS, positions)
    assert not {part[0] for part in found} & {".", ")", "sehr"}
    assert any(part[-1] == "." for part in found[:-1])


def test_a_script_without_spaces_is_split_after_its_full_stops() -> None:
    text = "小狗看见旧桥。孩子戴着绿色的帽子。他们在公园里玩。"
    vocabulary = train_bpe([text] * 5, min_frequency=1, max_size=28, byte_fallback=False)
    assert {part[-1] for part in pieces(vocabulary, text, 14)} == {"。"}


def test_a_word_longer_than_the_positions_is_split_all_the_same() -> None:
    vocabulary = train_bpe(["a b", *"abc"], min_frequency=1, max_size=12, byte_fallback=False)
    assert [len(part) for part in pieces(vocabulary, "b" * 20, 9)] == [7, 7, 6]
