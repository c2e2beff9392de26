"""Log the curves of a running training: `python -m transformer.workflow.live TASK NAME TRAINING`.

They are JSON lines on standard input, and go to an experiment of their own, `TASK (live)`.
"""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_READ = 1 << 16


def batches(stream: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of available events until the stream ends."""
    rest = b""
    while some := stream.read1(_READ):
        *lines, rest = (rest + some).split(b"\n")
        if lines:
            yield [json.loads(line) for line in lines]


def main() -> None:
    """Log the events of a training run; an error ends in one line."""
    task, name, training = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training reported how it ended
    from transformer.workflow.mlflow import follow, in_words, open_store  # seconds, in which Ctrl-C may come

    try:
        follow(open_store(Path.cwd(), f"{task} (live)"), name, training, batches(sys.stdin.buffer))
    except Exception as error:  # the boundary: what MLflow, its database and the connection raise
        sys.exit(f"no live curves: {in_words(error)}; the result's run will have them")


if __name__ == "__main__":
    main()
