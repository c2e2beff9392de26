"""Windows of texts, and which of their tokens are hidden."""

import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models

from tests.builders import language
from transformer.data.store import ColumnWriter, Sequences
from transformer.data.subwords import train_bpe
from transformer.data.text import HAN, KANA, SOUTH_EAST
from transformer.data.vocabulary import WORDPIECE_SPECIALS, Vocabulary
from transformer.families.language.interface import LanguageConfig, mask_id
from transformer.families.language.windows import EncodedWindows, Masking, _joins, continuations, cut

PIECES = [*WORDPIECE_SPECIALS, "[MASK]", *(f"{'##' if i % 3 == 2 else ''}p{i}" for i in range(95))]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """100 WordPieces, every third of the ordinary ones a continuation; the mask is 4."""
    return Vocabulary(Tokenizer(models.WordPiece({name: i for i, name in enumerate(PIECES)}, unk_token="[UNK]")))


def masking(vocabulary: Vocabulary, share: float = 0.15, whole_words: bool = False) -> Masking:
    return Masking(vocabulary, share=share, whole_words=whole_words, seed=1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("context", [4, 7, 300])
def test_every_token_is_in_one_window_of_its_own_text(causal: bool, context: int) -> None:
    lengths = np.array([2, 3, 9, 2, 40, 12])
    text, start, stop = cut(lengths, context, causal=causal)
    predicted: list[tuple[int, int]] = []
    for each, first, last in zip(text.tolist(), start.tolist(), stop.tolist(), strict=True):
        predicted += [(each, place) for place in range(first + causal, last)]
        assert (last - first - 1 if causal else last - first + 2) <= context
    ends = lengths if causal else lengths - 1
    assert predicted == [(each, place) for each, end in enumerate(ends.tolist()) for place in range(1, end)]
    sizes = [stop[text == each] - start[text == each] for each in np.unique(text)]
    assert all(np.ptp(each) <= 1 for each in sizes)


def test_of_100_hidden_tokens_80_are_masked_and_10_swapped(vocabulary: Vocabulary) -> None:
    hide, random = masking(vocabulary), np.random.default_rng(0)
    windows = [np.concatenate(([2], random.integers(5, 100, 98), [3])) for _ in range(400)]
    found = [hide(window, 1, number) for number, window in enumerate(windows)]
    hidden, given, real = (np.stack(each) for each in ([f.hidden for f in found], [f.given for f in found], windows))
    assert set(hidden.sum(axis=1)) == {round(0.15 * 98)}
    assert not hidden[:, [0, -1]].any()
    assert (given == real)[~hidden].all()
    masked, same = (given == 4)[hidden].mean(), (given == real)[hidden].mean()
    # 6,000 draws: three standard deviations are 1.5 and 1.2 points; a swap hits the same token once in 95.
    assert abs(masked - 0.8) < 0.016
    assert abs(same - 0.1) < 0.014
    swapped = given[hidden & (given != 4) & (given != real)]
    assert swapped.min() >= 5


def test_a_choice_depends_on_epoch_and_window_alone(vocabulary: Vocabulary) -> None:
    window = np.concatenate(([2], np.arange(5, 60), [3]))
    first, again, epoch, other = (masking(vocabulary)(window, *place) for place in ((1, 7), (1, 7), (2, 7), (1, 8)))
    assert np.array_equal(first.given, again.given)
    assert not np.array_equal(first.hidden, epoch.hidden) and not np.array_equal(first.hidden, other.hidden)
    assert masking(vocabulary)(np.array([2, 9, 3]), 1, 0).hidden.tolist() == [False, True, False]


def test_whole_words_are_hidden_whole_and_their_share_is_that_asked_for(vocabulary: Vocabulary) -> None:
    """On average: words that end beyond it are hidden as often as words that end before it are left."""
    continues = continuations(vocabulary)
    assert continues.tolist() == [name.startswith("##") for name in PIECES]
    random, hide, counts = np.random.default_rng(0), masking(vocabulary, 0.15, True), []
    for number in range(400):
        window = np.concatenate(([2], random.integers(5, 100, 60), [3]))
        hidden = hide(window, 1, number).hidden
        inside = [place for place in range(2, len(window) - 1) if continues[window[place]]]
        assert all(hidden[place] == hidden[place - 1] for place in inside)
        counts.append(int(hidden.sum()))
    assert np.mean(counts) == pytest.approx(9, abs=0.15)


def test_pieces_of_scripts_without_spaces_are_words_and_marks_continue_theirs() -> None:
    for texts, marks, letters in (
        (["这部电影很长很无聊", "我喜欢这部电影"], False, False),
        (["ภาพยนตร์เรื่องนี้ดีมาก"], True, False),
        (["यह फिल्म बहुत अच्छी है", "फिल्में"], True, True),
    ):
        found = train_bpe(texts * 20, min_frequency=1, max_size=200, byte_fallback=False)
        kinds = [unicodedata.category(name[0]) for name in found.entries(range(found.size))]
        continued = {kind for kind, continues in zip(kinds, continuations(found), strict=True) if continues}
        assert (bool(continued & {"Mn", "Mc"}), "Lo" in continued) == (marks, letters)


def test_the_scripts_without_spaces_are_those_of_the_evaluation() -> None:
    """`train` knows them by the names of letters, so that it does not depend on code of the evaluation."""
    ranges = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
    letters = [letter for letter in map(chr, range(0x110000)) if unicodedata.category(letter) == "Lo"]
    assert [letter for letter in letters if _joins(letter) == bool(ranges.match(letter))] == []


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_a_batch_asks_for_the_tokens_of_its_places(objective: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    texts = [np.concatenate(([2], random.integers(5, 100, size), [3])) for size in (30, 1, 0, 9)]
    ColumnWriter(tmp_path, "text", 100).write([Sequences.of(texts)])
    params = language(objective, max_length=12).config.model
    config = LanguageConfig(model=params, size=100, pad_id=0, mask_id=mask_id(vocabulary), vocabulary_sha256="0" * 64)
    split = EncodedWindows(tmp_path, config, masking(vocabulary, 0.5)).resegmented(None, 1)
    rows = np.arange(len(split))
    assert len(split) == (6 if objective == "causal" else 5)
    batch = split.batch(rows, torch.device("cpu"))
    real = batch.ids[batch.ids != 0]
    assert batch.ids.shape == (len(rows), split.lengths.max())
    assert real.shape == (split.lengths.sum(),)
    assert torch.equal(batch.ids.flatten()[batch.padded_places], real[batch.places])
    whole = torch.cat([torch.from_numpy(split.window(int(row))) for row in rows])
    if objective == "causal":
        assert len(batch.targets) == sum(len(text) - 1 for text in texts)
        assert torch.equal(batch.targets, torch.from_numpy(np.concatenate([text[1:] for text in texts])))
    else:
        assert torch.equal(batch.targets, whole[batch.places])
        assert (real[batch.places] == 4).any()
