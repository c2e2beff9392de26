"""What MLflow tracking costs a training: `python -m benchmarks.tracking_overhead [--rounds 5] [--epochs 8]`.

Runs the translation training on its encoded store (after `make repro`) with tracking on and off in turn, each in a
process of its own, and prints the whole stage's wall times, their medians and the ratio pair by pair.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ruamel.yaml import YAML

_NEEDED = ("params.yaml", "dvc.yaml", "dvc.lock", ".dvc/config", "stages", "transformer", "data/translation")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _prepare(root, arguments.epochs)
        _train(root, tracking=True)  # creates the database and warms the file cache
        pairs = [(_train(root, tracking=True), _train(root, tracking=False)) for _ in range(arguments.rounds)]
    for index, label in enumerate(("tracking on ", "tracking off")):
        times = [pair[index] for pair in pairs]
        print(f"{label}  median {statistics.median(times):.1f} s  (min {min(times):.1f}, max {max(times):.1f})")
    ratios = [on / off for on, off in pairs]
    print(f"on / off      median {statistics.median(ratios):.3f}  (min {min(ratios):.3f}, max {max(ratios):.3f})")


def _prepare(root: Path, epochs: int) -> None:
    for path in _NEEDED:
        source, target = Path(path), root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    subprocess.run(["git", "init", "-q", root], check=True)
    yaml = YAML()
    content = yaml.load(root / "params.yaml")
    content["translation"]["train"].update(epochs=epochs, patience=None)
    yaml.dump(content, root / "params.yaml")


def _train(root: Path, *, tracking: bool) -> float:
    yaml = YAML()
    content = yaml.load(root / "params.yaml")
    content["runtime"]["tracking"] = tracking
    yaml.dump(content, root / "params.yaml")
    environment = os.environ | {"DVC_ROOT": str(root), "PYTHONPATH": str(root)}
    started = time.perf_counter()
    command = [sys.executable, "-m", "stages.train", "translation"]
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
