"""Contenders side by side in one run: alternating rounds, medians, ratios to a named peer.

`python -m benchmarks.PART` prints a part's tables and writes `reports/benchmarks/PART.json`.
"""

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from transformer.core.errors import UserError
from transformer.core.files import write_json
from transformer.core.validation import Hardware
from transformer.nn.device import Compute, prepare

OUTPUT = Path("reports", "benchmarks")
Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Work(NamedTuple):
    """What a contender did in one round: tokens, sentences or reviews, and the time they took."""

    amount: float
    seconds: float


Contender = Callable[[int], Work]
"""Does the work of a round, given its number; all contenders get the same work in the same round."""


@dataclass(frozen=True)
class Table:
    """One metric of several contenders, one value per round."""

    title: str
    unit: str
    values: Mapping[str, Sequence[float]]
    peer: str
    """The contender whose ratio is 1."""

    def median(self, name: str) -> float:
        return statistics.median(self.values[name])

    def ratio(self, name: str) -> float:
        """The median of the ratios per round: whatever slows down a whole round cancels out."""
        return statistics.median(a / b for a, b in zip(self.values[name], self.values[self.peer], strict=True))

    def as_json(self) -> dict[str, Any]:
        """All numbers, rounded to five digits."""
        rows = {
            name: {"values": [*map(_five, values)], "median": _five(self.median(name)), "ratio": _five(ratio)}
            for name, values in self.values.items()
            for ratio in [self.ratio(name)]
        }
        return {"title": self.title, "unit": self.unit, "peer": self.peer, "rows": rows}

    def lines(self) -> Iterator[str]:
        width = max(len(name) for name in self.values)
        yield f"{self.title} ({self.unit}; median, lowest and highest; ratio to `{self.peer}`)"
        for name, values in self.values.items():
            numbers = "  ".join(f"{value:>10,.4g}" for value in (self.median(name), min(values), max(values)))
            yield f"  {name:<{width}}  {numbers}  {self.ratio(name):>8.3g} x"


@dataclass(frozen=True)
class Report:
    """What a part measured, and other facts."""

    tables: Sequence[Table]
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How to measure."""

    rounds: int
    data: Path | None
    """The folder of the real corpora; None: the sample corpora."""
    hardware: Hardware
    compute: Compute
    more: argparse.Namespace
    """Arguments specific to this part."""


def main(
    part: str,
    description: str | None,
    measure: Callable[[Options], Report],
    arguments: Callable[[argparse.ArgumentParser], None],
    rounds: int = 5,
) -> None:
    """Parse the command line, measure, print, and write the file; a UserError exits with one line and status 1."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_arguments(parser)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"alternating rounds (default: {rounds})")
    arguments(parser)
    found = parser.parse_args()
    hardware = Hardware(
        device=found.device, precision=found.precision, threads=found.threads, deterministic=False, portable=False
    )
    try:
        options = Options(found.rounds, found.data, hardware, prepare(hardware), found)
        write(part, measure(options), options, found.output)
    except UserError as error:
        sys.exit(f"error: benchmarks.{part}: {error}")


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the real corpora (default: the sample corpora)")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16", help="of our training")
    parser.add_argument("--threads", type=int, default=min(os.cpu_count() or 1, 2), help="default: at most 2")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder of the results (default: {OUTPUT})")


def write(part: str, report: Report, options: Options, output: Path) -> None:
    """Print the tables; write PART.json into `output`."""
    for table in report.tables:
        print("\n".join(table.lines()))
    for name, value in report.notes.items():
        print(f"  {name}: {value}")
    compute = options.compute
    machine = {"cpu": _cpu(), "device": compute.device.type, "precision": compute.precision, "torch": torch.__version__}
    content = {
        "part": part,
        "machine": machine | {"threads": options.hardware.threads},
        "corpora": "sample" if options.data is None else "real",
        "tables": [table.as_json() for table in report.tables],
        "notes": dict(report.notes),
    }
    write_json(output / f"{part}.json", content)


def measured(
    contenders: Mapping[str, Callable[[int], Result]], options: Options, *, warm: bool = True
) -> dict[str, list[Result]]:
    """What every contender did in each round; every second round runs them in reverse order.

    warm: run round 0 first as a warm-up, which does not count.
    """
    done: dict[str, list[Result]] = {name: [] for name in contenders}
    for number in range(0 if warm else 1, options.rounds + 1):
        for name in list(contenders)[:: 1 if number % 2 else -1]:
            gc.collect()
            started = time.perf_counter()
            work = contenders[name](number)
            if number:
                done[name].append(work)
                seconds = time.perf_counter() - started
                print(f"  round {number} of {options.rounds}  {name}  {seconds:.2f} s", file=sys.stderr)
    return done


def rates(done: Mapping[str, Sequence[Work]]) -> dict[str, list[float]]:
    return {name: [work.amount / work.seconds for work in works] for name, works in done.items()}


def now(device: torch.device) -> float:
    """Seconds, when the device has done what it was given: CUDA is asynchronous."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


_made: dict[str, Callable[[Any], Any]] = {}


def isolated(
    make: Callable[..., Callable[[Argument], Result]], *arguments: Any, threads: int
) -> Callable[[Argument], Result]:
    """The contender that `make(*arguments)` creates in a new process, which lives as long as this one.

    There PyTorch has its default settings. Our training configures PyTorch and the C library's memory for the whole
    process (`nn/device.py`), which alone would double the straightforward model's speed.
    """
    pool = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_start, initargs=(threads, make, arguments)
    )

    def run(argument: Argument) -> Result:
        result: Result = pool.submit(_work, argument).result()
        return result

    return run


def _start(threads: int, make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    os.environ.pop("ONEDNN_PRIMITIVE_CACHE_CAPACITY", None)  # inherited if our process has set it
    torch.set_num_threads(threads)
    _made["contender"] = make(*arguments)


def _work(argument: Any) -> Any:
    return _made["contender"](argument)


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def _five(value: float) -> float:
    return float(f"{value:.5g}")
