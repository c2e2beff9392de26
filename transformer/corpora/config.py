"""The parameters that the download stages of all tasks share. A family adds its own in its `download.py`."""

from typing import Literal

from pydantic import Field

from transformer.core.schema import Section


class SampleRows(Section):
    """How many rows a split of the sample corpus has."""

    train: int = Field(ge=1)
    validation: int = Field(ge=1)
    test: int = Field(ge=1)


class Download(Section):
    """Where a corpus comes from."""

    source: Literal["sample", "files", "hub"]
    """`sample`: the project's generator; `files`: the folder `path`; `hub`: `repository` on the Hugging Face Hub."""
    path: str = Field(min_length=1)
    """The folder of the source `files`."""
    repository: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[\w.-]+)?$")
    """The data set's name on the Hub."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The data set's commit: a branch or a tag can move, a commit cannot."""
    sample_rows: SampleRows
    seed: int = Field(ge=0)
    """Draws the sample corpus, and the validation split where one is held out of train."""
    expected_sha256: str | None = Field(pattern=r"^[0-9a-f]{64}$")
    """The `content_sha256` that provenance.json must come to; null: any."""
