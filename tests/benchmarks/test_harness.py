"""The harness: rounds, medians, ratios, files, processes."""

import argparse
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.harness import Options, Report, Table, Work, measured, rates, write
from transformer.core.files import read_json
from transformer.core.validation import Hardware
from transformer.nn.device import Compute


@pytest.fixture
def options() -> Options:
    hardware = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False, portable=False)
    return Options(3, None, hardware, Compute(torch.device("cpu"), "fp32"), argparse.Namespace())


def test_rounds_alternate_and_the_first_does_not_count(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.collect", lambda: 0)  # before each work; a second where all tests have left their objects
    calls = []

    def contender(name: str, number: int) -> Work:
        calls.append(name)
        return Work(4.0 * number, 2.0)

    done = measured({name: partial(contender, name) for name in "ab"}, options)
    assert calls == ["b", "a", "a", "b", "b", "a", "a", "b"]
    assert rates(done) == {"a": [2.0, 4.0, 6.0], "b": [2.0, 4.0, 6.0]}


# The second round is slow for both: the ratio of the medians would be 2.5, but the median of the ratios is 2.
TABLE = Table("Speed", "tokens/s", {"ours": [50.0, 20.0, 60.0], "peer": [20.0, 10.0, 30.0]}, "peer")


def test_ratios_are_the_median_over_rounds(
    options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("part", Report([TABLE], {"identical": 7}), options, tmp_path)
    content = read_json(tmp_path / "part.json")
    assert content["tables"][0]["rows"]["ours"] == {"values": [50.0, 20.0, 60.0], "median": 50.0, "ratio": 2.0}
    assert content["notes"] == {"identical": 7}
    assert {"cpu", "threads", "torch", "precision"} <= content["machine"].keys()
    assert capsys.readouterr().out.splitlines()[1].split() == ["ours", "50", "20", "60", "2", "x"]
