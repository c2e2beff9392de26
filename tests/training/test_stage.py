"""What the training stage refuses or says before it trains."""

from pathlib import Path

import pytest

from tests.stages import Said
from tests.training.small import prepare, smoke, train
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.training import stage


@pytest.mark.parametrize(
    ("runtime", "training", "message"),
    [
        ({"trainers": 3}, {"shards": 4}, r"runtime.trainers \(3\) must divide train.shards \(4\)"),
        ({}, {"shards": 6}, r"shards \(6\) must be a power of 2"),
    ],
)
def test_shards_and_trainers_that_do_not_fit_are_one_line(
    runtime: dict[str, int], training: dict[str, int], message: str, tmp_path: Path
) -> None:
    content = smoke("sentiment", {"train": training})
    content["runtime"] |= runtime
    with pytest.raises(UserError, match=message):
        train(content, "sentiment", tmp_path, tmp_path, observer=Observer())


def test_a_cpu_that_is_slower_in_bf16_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = smoke("sentiment", {"download": {"sample_rows": {"train": 20, "validation": 4, "test": 4}}})
    prepare(content, "sentiment", tmp_path / "data")
    warned = []
    for precision, slower in (("bf16", True), ("bf16", False), ("fp32", True)):
        content["hardware"]["precision"], said = precision, Said()
        monkeypatch.setattr(stage, "loses_by_bf16", lambda slower=slower: slower)
        train(content, "sentiment", tmp_path / "data", tmp_path / "trained", observer=said)
        warned.append(any("this CPU is slower in bf16" in line for line in said.lines))
    assert warned == [True, False, False]
