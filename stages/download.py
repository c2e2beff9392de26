"""download: a source's rows, checked, in one tracked format."""

from transformer.core.stage import Stage, main


def download(stage: Stage) -> None:
    """Write data/TASK/corpus."""
    stage.run(output=stage.data / "corpus")


if __name__ == "__main__":
    main("download", download)
