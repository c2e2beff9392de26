"""The benchmark harness: contenders in alternating rounds, medians, ratios to a named peer.

A part is a module with a `main`; `python -m benchmarks.PART` prints its tables and writes
`reports/benchmarks/PART.json` and `PART.svg`.
"""

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import torch

from benchmarks.figure import draw
from transformer.checkpoint.device import Compute, prepare
from transformer.core.errors import UserError
from transformer.core.files import write_json
from transformer.core.schema import Hardware

OUTPUT = Path("reports", "benchmarks")


class Work(NamedTuple):
    """The work of a contender in one round."""

    amount: float
    """In the part's unit: tokens, sentences, reviews."""
    seconds: float

    @property
    def rate(self) -> float:
        """The amount per second."""
        return self.amount / self.seconds


Contender = Callable[[int], Work]
"""Does the work of a round, given its number; all contenders get the same work in the same round."""


class Timed(Protocol):
    """What a contender did in a round."""

    @property
    def seconds(self) -> float:
        """How long it took."""


Done = TypeVar("Done", bound=Timed)


class Target(NamedTuple):
    """A target for the ratio of two contenders."""

    contender: str
    peer: str
    bound: float
    at_least: bool = True

    def met(self, ratio: float) -> bool:
        """Whether a ratio meets the target."""
        return ratio >= self.bound if self.at_least else ratio <= self.bound


class Limit(NamedTuple):
    """An upper limit for a contender's median, in the table's unit."""

    contender: str
    most: float


@dataclass(frozen=True)
class Table:
    """One metric of several contenders, one value per round; or curves, one value per point of `axis`."""

    title: str
    unit: str
    values: Mapping[str, Sequence[float]]
    peer: str
    """The contender whose ratio is 1."""
    targets: Sequence[Target] = ()
    limits: Sequence[Limit] = ()
    axis: Sequence[float] = ()
    """The x values of curves; empty for rounds."""
    axis_label: str = ""

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return statistics.median(self.values[name])

    def ratio(self, name: str, peer: str) -> float:
        """The median of the ratios per round: whatever slows down a whole round cancels out."""
        return statistics.median(a / b for a, b in zip(self.values[name], self.values[peer], strict=True))

    def as_json(self) -> dict[str, Any]:
        """All numbers, rounded to five digits."""
        rows = {
            name: {
                "values": [_five(value) for value in values],
                "median": _five(self.median(name)),
                "ratio": _five(self.ratio(name, self.peer)),
            }
            for name, values in self.values.items()
        }
        targets = [
            {**target._asdict(), "ratio": _five(ratio), "met": target.met(ratio)}
            for target in self.targets
            for ratio in [self.ratio(target.contender, target.peer)]
        ]
        limits = [{**limit._asdict(), "met": self.median(limit.contender) <= limit.most} for limit in self.limits]
        return {
            "title": self.title,
            "unit": self.unit,
            "peer": self.peer,
            "rows": rows,
            "targets": targets,
            "limits": limits,
            "axis": list(self.axis),
            "axis_label": self.axis_label,
        }


@dataclass(frozen=True)
class Report:
    """What a part measured."""

    tables: Sequence[Table]
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Other facts: what was compared, checks and their outcome."""


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
    *,
    arguments: Callable[[argparse.ArgumentParser], None] | None = None,
    rounds: int = 5,
) -> None:
    """Parse the command line, measure, print, and write the files; a UserError exits with one line and status 1."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_arguments(parser)
    parser.add_argument("--rounds", type=_positive, default=rounds, help=f"alternating rounds (default: {rounds})")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder of the results (default: {OUTPUT})")
    if arguments is not None:
        arguments(parser)
    found = parser.parse_args()
    hardware = Hardware(device=found.device, precision=found.precision, threads=found.threads, deterministic=False)
    try:
        options = Options(found.rounds, found.data, hardware, prepare(hardware), found)
        report = measure(options)
        write(part, report, options, found.output)
    except UserError as error:
        sys.exit(f"error: benchmarks.{part}: {error}")


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every part except its rounds and its output."""
    parser.add_argument("--data", type=Path, help="folder of the real corpora (default: the sample corpora)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto", help="of our training")
    parser.add_argument("--threads", type=_positive, default=min(os.cpu_count() or 1, 2), help="default: at most 2")


def write(part: str, report: Report, options: Options, output: Path) -> None:
    """Print the tables; write PART.json and PART.svg into `output`."""
    for table in report.tables:
        print("\n".join(lines(table)))
    for name, value in report.notes.items():
        print(f"  {name}: {value}")
    content = {
        "part": part,
        "machine": machine(options),
        "corpora": "sample" if options.data is None else "real",
        "tables": [table.as_json() for table in report.tables],
        "notes": dict(report.notes),
    }
    write_json(output / f"{part}.json", content)
    draw(output / f"{part}.svg", content)


def measured(
    contenders: Mapping[str, Callable[[int], Done]], options: Options, *, warm: bool = True
) -> dict[str, list[Done]]:
    """What every contender did in each round; every second round runs them in reverse order.

    warm: run round 0 first as a warm-up, which does not count.
    """
    done: dict[str, list[Done]] = {name: [] for name in contenders}
    for number in range(0 if warm else 1, options.rounds + 1):
        for name in list(contenders)[:: 1 if number % 2 else -1]:
            gc.collect()
            work = contenders[name](number)
            if number:
                done[name].append(work)
                print(f"  round {number} of {options.rounds}  {name}  {work.seconds:.2f} s", file=sys.stderr)
    return done


def rates(done: Mapping[str, Sequence[Work]]) -> dict[str, list[float]]:
    """The amounts per second."""
    return {name: [work.rate for work in works] for name, works in done.items()}


def seconds(done: Mapping[str, Sequence[Work]]) -> dict[str, list[float]]:
    """The times."""
    return {name: [work.seconds for work in works] for name, works in done.items()}


class Clock:
    """Time on a device. CUDA is asynchronous, so it is synchronized before reading the clock."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._started = self.now()

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()

    def elapsed(self) -> float:
        """Seconds since this clock was made."""
        return self.now() - self._started


def lines(table: Table) -> Iterator[str]:
    """The table as text."""
    width = max(len(name) for name in table.values)
    if table.axis:
        yield f"{table.title} ({table.unit})"
        for name, values in {table.axis_label: table.axis, **table.values}.items():
            yield f"  {name:<{width}}  " + "  ".join(f"{value:>6.4g}" for value in values)
    else:
        yield f"{table.title} ({table.unit}; median, lowest and highest; ratio to `{table.peer}`)"
        for name, values in table.values.items():
            figures = "  ".join(f"{value:>10,.4g}" for value in (table.median(name), min(values), max(values)))
            yield f"  {name:<{width}}  {figures}  {table.ratio(name, table.peer):>8.3g} x"
    for target in table.targets:
        ratio = table.ratio(target.contender, target.peer)
        bound = f"{'at least' if target.at_least else 'at most'} {target.bound:g}"
        yield f"  {_verdict(target.met(ratio))}: {target.contender} / {target.peer} = {ratio:.3g}, target: {bound}"
    for limit in table.limits:
        found = table.median(limit.contender)
        yield f"  {_verdict(found <= limit.most)}: {limit.contender} = {found:.3g}, target: at most {limit.most:g}"


def machine(options: Options) -> dict[str, Any]:
    """The machine and the software versions of the measurement."""
    device = options.compute.device
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "precision": options.compute.precision,
        "python": platform.python_version(),
        "threads": options.hardware.threads,
        "torch": torch.__version__,
    }


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()


def _five(value: float) -> float:
    return float(f"{value:.5g}")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value
