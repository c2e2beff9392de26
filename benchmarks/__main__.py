"""The shorter benchmarks, one after the other: `python -m benchmarks`, or `make bench`."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import OUTPUT, add_common_arguments
from benchmarks.workspace import ROOT
from transformer.core.files import read_json

PARTS = (
    "training_translation",
    "training_sentiment",
    "curves",
    "decoding",
    "inference_cpu",
    "pipeline",
    "growth",
    "shards",
    "operators",
    "workflow_overhead",
    "tracking",
)


def main() -> None:
    """Run each part in its own process, and print which targets were met; status 1 if a part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder of the results (default: {OUTPUT})")
    parser.add_argument("--rounds", type=int, help="rounds of every part (default: the part's own)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="run only these")
    options = parser.parse_args()
    common = [f"--{name}={getattr(options, name)}" for name in ("device", "precision", "threads", "output")]
    common += [
        f"--{name}={getattr(options, name)}" for name in ("data", "rounds") if getattr(options, name) is not None
    ]
    failed, begun = [], time.perf_counter()
    for part in options.parts:
        started = time.perf_counter()
        print(f"== {part}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{part}", *common], check=False).returncode:
            failed.append(part)
        print(f"   {time.perf_counter() - started:.0f} s\n", flush=True)
    done = [part for part in options.parts if part not in failed]
    print("\n".join(line for part in done for line in verdicts(read_json(options.output / f"{part}.json"))))
    print("\n".join(_lasting()))
    print(f"{len(done)} parts in {(time.perf_counter() - begun) / 60:.1f} minutes; files in {options.output}")
    if failed:
        sys.exit(f"error: failed: {', '.join(failed)}")


def _lasting() -> list[str]:
    """The committed verdicts of `make bench-lasting`, which takes too long to run here, with their commit."""
    path = str(OUTPUT / "lasting.json")
    commit = _git("log", "-1", "--format=%h", "--", path).strip()
    content = _git("show", f"{commit}:./{path}") if commit else ""
    if not content:
        return []
    return [f"make bench-lasting, not run now but as committed in {commit}:", *verdicts(json.loads(content))]


def _git(*arguments: str) -> str:
    """What it prints; nothing where it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def verdicts(content: dict[str, Any]) -> list[str]:
    """One line per target in a part's JSON."""
    found = []
    for table in content["tables"]:
        for target in table["targets"]:
            sign = ">=" if target["at_least"] else "<="
            what = f"{target['contender']} / {target['peer']}"
            found.append(_line(table, what, f"{target['ratio']:.3g} {sign} {target['bound']:g}", target["met"]))
        for limit in table["limits"]:
            median = table["rows"][limit["contender"]]["median"]
            found.append(_line(table, limit["contender"], f"{median:.3g} <= {limit['most']:g}", limit["met"]))
    return found


def _line(table: dict[str, str], what: str, comparison: str, met: bool) -> str:
    return f"{'met' if met else 'MISSED':<6}  {table['title']:<36}  {what:<44}  {comparison}"


if __name__ == "__main__":
    main()
