"""BPE-dropout: varying segmentations of the same text, determined by a seed."""

from collections import Counter
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer.data.bpe_dropout as module
from tests.builders import LAYERS
from tests.data.sentences import sample_sentences
from transformer.data.bpe_dropout import BpeDropout, MergeSampler
from transformer.data.store import ColumnWriter, EncodedColumn, Sequences
from transformer.data.subwords import train_bpe
from transformer.data.vocabulary import SPACE, Ids, Vocabulary, write_bpe_dropout
from transformer.families.seq2seq.evaluate import predicted_words
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.pairs import EncodedPairs


@cache
def vocabulary() -> Vocabulary:
    return train_bpe(sample_sentences(), min_frequency=1, max_size=800, byte_fallback=True)


def encoded() -> list[Ids]:
    return vocabulary().encode([*sample_sentences()[:200], "", "  ", "der 你 Hund\u2581"])


def sampled(dropout: float, seed: int = 0) -> list[Ids]:
    sampler = MergeSampler(vocabulary(), dropout)
    return [sampler(ids, np.random.default_rng((seed, row))) for row, ids in enumerate(encoded())]


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(sample_sentences())).map(" ".join))
def test_nothing_dropped_is_the_librarys_encoding(text: str) -> None:
    (ids,) = vocabulary().encode([text])
    assert MergeSampler(vocabulary(), 0.0)(ids, np.random.default_rng(0)).tolist() == ids.tolist()


def test_more_dropped_is_more_pieces_of_the_same_text() -> None:
    counts, texts = [], [vocabulary().decode(row.tolist()) for row in encoded()]
    for dropout in (0.0, 0.1, 0.5, 0.9, 1.0):
        rows = sampled(dropout)
        counts.append(sum(len(row) for row in rows))
        assert [vocabulary().decode(row.tolist()) for row in rows] == texts
        assert all((row[0], row[-1]) == (vocabulary().begin_id, vocabulary().end_id) for row in rows)
    assert counts == sorted(set(counts))
    pieces = [str(vocabulary().tokenizer.id_to_token(i)) for ids in rows for i in ids[1:-1]]
    assert all(len(piece) == 1 or piece.startswith("<0x") for piece in pieces), "all are characters"


def by_the_paper(
    word: list[int], merges: dict[tuple[int, int], tuple[int, int]], dropout: float, generator: np.random.Generator
) -> list[int]:
    """Algorithm 1 of Provilkov et al., word for word."""
    while True:
        possible = [(*merges[pair], place) for place, pair in enumerate(pairwise(word)) if pair in merges]
        left = [merge for merge in possible if generator.random() >= dropout]
        if not left:
            return word
        _, piece, place = min(left, key=lambda merge: (merge[0], merge[2]))
        word = [*word[:place], piece, *word[place + 2 :]]


@pytest.mark.parametrize("text", ["Schwester", "Mann,Frau,Kind", "Schwester你Mann"])
def test_segmentations_are_as_probable_as_in_the_paper(text: str) -> None:
    """Words without a space between are drawn each on its own: a merge that was dropped is not drawn again."""
    sampler, draws = MergeSampler(vocabulary(), 0.3), 2000
    (ids,) = vocabulary().encode([text])
    characters = [c for i in ids[1:-1] for c in sampler._characters[i]]
    words = [word for word, _ in vocabulary().tokenizer.pre_tokenizer.pre_tokenize_str(f"{SPACE}{text}")]
    ends = [*accumulate(map(len, words[:-1]), initial=0), len(characters)]
    split = [characters[start:end] for start, end in pairwise(ends)]

    def expected(seed: int) -> tuple[int, ...]:
        generator = np.random.default_rng(seed)
        return tuple(piece for word in split for piece in by_the_paper(word, sampler._merges, 0.3, generator))

    ours = Counter(tuple(sampler(ids, np.random.default_rng(seed))[1:-1].tolist()) for seed in range(draws))
    theirs = Counter(expected(seed) for seed in range(draws))
    assert len(ours) > 10
    for segmentation in ours | theirs:
        share, reference = ours[segmentation] / draws, theirs[segmentation] / draws
        deviation = np.sqrt(2 * reference * (1 - reference) / draws)
        assert abs(share - reference) <= 5 * deviation + 5 / draws
    lengths = [np.array([len(each) for each in found.elements()]) for found in (ours, theirs)]
    deviation = np.sqrt(sum(each.var() for each in lengths) / draws)
    assert abs(lengths[0].mean() - lengths[1].mean()) <= 5 * deviation


def test_what_is_kept_in_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [row.tolist() for row in sampled(0.3)]
    for most in (0, 50):
        monkeypatch.setattr(module, "_MOST_STATES", most)
        assert [row.tolist() for row in sampled(0.3)] == expected


@pytest.fixture
def vocab(tmp_path: Path) -> Path:
    for side in ("source", "target"):
        vocabulary().save(tmp_path / "vocab" / side / "tokenizer.json")
        ColumnWriter(tmp_path / "train", side, vocabulary().size).write([Sequences.of(encoded())])
    return tmp_path / "vocab"


def test_epochs_sides_and_seeds_differ_and_come_again(vocab: Path) -> None:
    write_bpe_dropout(vocab, 0.2)

    def column(side: str, *, epoch: int, seed: int) -> list[list[int]]:
        dropout = BpeDropout.open(vocab, seed)
        assert dropout is not None
        view = dropout.column(side, EncodedColumn(vocab.parent / "train", side), epoch, longest=100)
        assert view.lengths.tolist() == [len(row) for row in encoded()]
        return [view[row].tolist() for row in range(len(view))]

    first = column("source", epoch=1, seed=1)
    assert first == column("source", epoch=1, seed=1)
    others = [column("source", epoch=2, seed=1), column("target", epoch=1, seed=1), column("source", epoch=1, seed=2)]
    for other in others:
        assert sum(a != b for a, b in zip(first, other, strict=True)) > 100


def encoded_pairs(vocab: Path, **changes: Any) -> EncodedPairs:
    size, one = vocabulary().size, {"encoder_layers": 1, "decoder_layers": 1, "tie_embeddings": "none"}
    model = Seq2SeqParams(**LAYERS | one | changes)
    config = Seq2SeqConfig(model=model, source_size=size, target_size=size, source_pad_id=0, target_pad_id=0)
    return EncodedPairs(vocab.parent / "train", config)


def test_pairs_have_their_epochs_pieces_and_stay_as_stored(vocab: Path) -> None:
    pairs = encoded_pairs(vocab)
    write_bpe_dropout(vocab, 0.3)
    rows, device = np.arange(20), torch.device("cpu")
    stored = [side.tolist() for side in pairs.batch(rows, device)]
    first, second = (pairs.resegmented(BpeDropout.open(vocab, 1), epoch).batch(rows, device) for epoch in (1, 2))
    assert first[0].tolist() != stored[0] != second[0].tolist() != first[0].tolist()
    assert max(first[0].shape[1], first[1].shape[1]) <= LAYERS["max_length"]
    assert [side.tolist() for side in pairs.batch(rows, device)] == stored
    assert pairs.resegmented(None, 1) is pairs
    write_bpe_dropout(vocab, 0.0)
    assert BpeDropout.open(vocab, 1) is None


def test_words_of_a_reference_that_is_cut_count_as_far_as_they_are_predicted(vocab: Path) -> None:
    """Else word_perplexity is the lower the more a vocabulary cuts."""
    pairs = encoded_pairs(vocab, max_length=6)
    references = ["word"] * len(pairs)
    lengths = [len(pairs.target[row]) for row in range(len(pairs))]
    assert max(lengths) > 12 > 6 > min(lengths)
    expected = sum(2 * min(length - 1, 5) / (length - 1) for length in lengths)
    assert predicted_words(pairs, references) == pytest.approx(expected)


def test_a_text_that_fits_as_stored_is_not_cut(vocab: Path) -> None:
    write_bpe_dropout(vocab, 0.5)
    column = EncodedColumn(vocab.parent / "train", "source")
    dropout = BpeDropout.open(vocab, 1)
    assert dropout is not None
    drawn = dropout.column("source", column, 1, longest=10_000)
    for row in range(20):
        stored, new = column[row].tolist(), drawn[row].tolist()
        for longest in (len(stored), len(stored) - 1, len(new)):
            seen = dropout.column("source", column, 1, longest=longest)[row].tolist()
            assert seen == (stored if len(stored) <= longest < len(new) else new)
