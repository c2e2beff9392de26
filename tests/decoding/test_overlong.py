"""Sources longer than the model's positions: cut, translated in parts, or refused."""

import numpy as np
import pytest

from tests.decoding.models import run, trained
from transformer.decoding.seq2seq.overlong import fit_sources
from transformer.errors import UserError
from transformer.text.batching import Ids


def source(length: int) -> Ids:
    return np.concatenate(([2], np.random.default_rng(length).integers(4, 30, size=length - 2), [3]))


@pytest.mark.parametrize("length", [3, 31, 32, 33, 62, 63, 500])
def test_parts_hold_every_token_once_and_fit(length: int) -> None:
    parts, owners = fit_sources([source(5), source(length)], 32, "split")
    mine = [part for part, owner in zip(parts, owners, strict=True) if owner == 1]
    assert np.concatenate([part[1:-1] for part in mine]).tolist() == source(length)[1:-1].tolist()
    assert all(len(part) <= 32 and part[0] == 2 and part[-1] == 3 for part in mine)
    assert len(mine) == -(-(length - 2) // 30)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_a_split_source_is_translated_in_parts(method: str) -> None:
    model, long = trained("post"), source(80)
    parts, _ = fit_sources([long], 32, "split")
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
