"""The harness: rounds, medians, ratios, files."""

import argparse
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import _lasting, verdicts
from benchmarks.harness import Limit, Options, Report, Table, Target, Work, lines, measured, rates, write
from benchmarks.isolated import alone
from benchmarks.workspace import Workspace, ensure, prepared
from transformer.checkpoint.device import Compute
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.schema import Hardware


@pytest.fixture
def options() -> Options:
    hardware = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False)
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


def table() -> Table:
    # The second round is slow for both: the ratio of the medians would be 2.5, but the median of the ratios is 2.
    return Table(
        "Speed",
        "tokens/s",
        {"ours": [50.0, 20.0, 60.0], "peer": [20.0, 10.0, 30.0]},
        "peer",
        [Target("ours", "peer", 2.0), Target("ours", "peer", 2.1)],
        [Limit("peer", 20.0), Limit("peer", 19.0)],
    )


def test_ratios_are_the_median_over_rounds() -> None:
    assert table().ratio("ours", "peer") == 2.0
    assert table().median("ours") == 50.0


def test_verdicts() -> None:
    verdicts = [line.split()[0] for line in lines(table()) if "target:" in line]
    assert verdicts == ["met:", "MISSED:", "met:", "MISSED:"]


def test_the_summary_has_a_line_a_target(options: Options, tmp_path: Path) -> None:
    write("part", Report([table()]), options, tmp_path)
    found = [line.split() for line in verdicts(read_json(tmp_path / "part.json"))]
    assert [line[0] for line in found] == ["met", "MISSED", "met", "MISSED"]
    assert [line[-3:] for line in found] == [
        ["2", ">=", "2"],
        ["2", ">=", "2.1"],
        ["20", "<=", "20"],
        ["20", "<=", "19"],
    ]


def test_files_hold_figures_verdicts_and_the_machine(
    options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curve = Table("Loss", "nats", {"ours": [3.0, 2.0]}, "ours", axis=[10, 20], axis_label="updates")
    write("part", Report([table(), curve], {"identical": 7}), options, tmp_path)
    content = read_json(tmp_path / "part.json")
    speed = content["tables"][0]
    assert speed["rows"]["ours"] == {"values": [50.0, 20.0, 60.0], "median": 50.0, "ratio": 2.0}
    assert [target["met"] for target in speed["targets"]] == [True, False]
    assert content["notes"] == {"identical": 7}
    assert {"cpu", "threads", "torch", "precision"} <= content["machine"].keys()
    figure = (tmp_path / "part.svg").read_text()
    assert all(word in figure for word in ("ours", "peer", "tokens/s", "updates"))
    assert "ours / peer = 2, target: at least 2.1" in capsys.readouterr().out


def test_missing_corpora_end_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        prepared("translation", tmp_path / "nowhere")


def test_an_interrupted_change_of_a_workspace_is_not_taken_for_complete(tmp_path: Path) -> None:
    class Interrupted(Workspace):
        def run(self, stage: str, task: str) -> None:
            raise KeyboardInterrupt

    (tmp_path / "params.yaml").write_text("one: 1")
    mark = tmp_path / "data" / "translation" / "stamp"
    mark.parent.mkdir(parents=True)
    mark.write_text("another")
    with pytest.raises(KeyboardInterrupt):
        ensure(Interrupted(tmp_path), "translation", ("download",))
    assert not mark.exists()


def test_a_figure_has_all_curves(options: Options, tmp_path: Path) -> None:
    names = [f"curve {number}" for number in range(9)]
    curves = Table("Loss", "nats", {name: [3.0, 2.0] for name in names}, names[0], axis=[1, 2])
    write("part", Report([curves]), options, tmp_path)
    assert all(name in (tmp_path / "part.svg").read_text() for name in names)


def test_lasting_takes_spans_of_fifty_updates(options: Options) -> None:
    from benchmarks.lasting import measure as lasting  # it imports transformers: 4 s, in every process

    with pytest.raises(UserError, match="--updates 120 is not a multiple of 50"):
        lasting(replace(options, more=argparse.Namespace(updates=120)))


def test_verdicts_of_another_run_have_their_commit() -> None:
    found = _lasting()
    assert not found or re.fullmatch(r"make bench-lasting, not run now but as committed in [0-9a-f]{7,}:", found[0])


def _process(parent: int) -> tuple[bool, int]:
    return os.getpid() != parent, torch.get_num_threads()


def test_peers_run_in_processes_of_their_own() -> None:
    assert alone(_process, os.getpid(), threads=3) == (True, 3)


def test_a_peer_that_dies_ends_in_one_line() -> None:
    with pytest.raises(UserError, match="process died"):
        alone(os._exit, 1, threads=1)
