"""Sources longer than the model's positions: cut, translated in parts, or refused."""

import numpy as np
import pytest

from tests.inference.models import run, tiny, trained
from transformer.core.errors import UserError
from transformer.data.store import Ids
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


def test_the_parts_of_a_split_source_are_sampled_apart() -> None:
    model, inner = tiny(3, target_size=12), np.array([5, 7, 4] * 10)
    alike = np.concatenate(([2], inner, inner, [3]))
    parts, _ = fit_sources([alike], 32, "split", None)
    assert np.array_equal(parts[0], parts[1]), "only the random numbers of the parts can differ"
    settings = {"method": "sample", "n_best": 8, "max_length": 6, "length_normalization": "none"}
    (drawn,), (alone,) = (run(model, [each], long_sources="split", **settings) for each in (alike, parts[0]))
    sums = {round(2 * each.log_probability, 6) for each in alone}
    assert not {round(each.log_probability, 6) for each in drawn} <= sums, "each part drew the same tokens"


def test_samples_of_a_split_source_are_samples_of_its_parts_joined() -> None:
    """Sample j of the whole is sample j of each part, and not the j-th best."""
    model, inner = tiny(3, target_size=12), np.array([5, 7, 4] * 20)
    settings = {"method": "sample", "n_best": 8, "max_length": 6, "length_normalization": "none"}
    (found,) = run(model, [np.concatenate(([2], inner, [3]))], long_sources="split", **settings)
    (first,) = run(model, [np.concatenate(([2], inner[:30], [3]))], **settings)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    beginnings = [each.ids[: len(own.ids)] for each, own in zip(found, first, strict=True)]
    assert sorted(each.score for each in first) != [each.score for each in first]
    assert beginnings != [own.ids for own in first], "the best of the whole begin with the best of the first part"


def test_a_cut_source_is_translated_as_its_beginning() -> None:
    model, long = trained("post"), source(80)
    assert run(model, [long]) == run(model, [np.concatenate((long[:31], long[-1:]))])


def test_refusing_says_which_text_and_what_to_do() -> None:
    with pytest.raises(UserError, match=r"text 2 has 33 tokens and the model 32 positions: .*long_sources"):
        run(trained("post"), [source(32), source(33)], long_sources="refuse")
