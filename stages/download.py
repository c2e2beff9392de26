"""download: reads and validates a source's rows, and writes them in one tracked format."""

import transformer.core.start  # noqa: F401  # first
from transformer.core.stage import Stage, main
from transformer.core.task import DownloadCode


def download(stage: Stage[DownloadCode]) -> dict[str, float]:
    """Write data/TASK/corpus."""
    return stage.code.run(stage.task, stage.params, output=stage.data / "corpus", observer=stage.observer)


if __name__ == "__main__":
    main("download", download)
