"""The benchmarks of `make bench`, one after the other: `python -m benchmarks`."""

import argparse
import subprocess
import sys

from benchmarks.harness import add_common_arguments

PARTS = ("training", "decoding", "pipeline")


def main() -> None:
    """Run each part in a process of its own, up to one that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--rounds", type=int, help="rounds of every part (default: the part's own)")
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, "serving", "quality"), default=PARTS)
    options = vars(parser.parse_args())
    parts = options.pop("parts")
    common = [f"--{name}={value}" for name, value in options.items() if value is not None]
    for part in parts:
        print(f"== {part}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{part}", *common], check=False).returncode:
            sys.exit(f"error: {part} failed")


if __name__ == "__main__":
    main()
