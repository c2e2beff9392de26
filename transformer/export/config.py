"""The parameters of an export."""

from pydantic import Field

from transformer.params.schema import Section


class ExportParams(Section):
    """`export` of a task."""

    registered_name: str = Field(min_length=1, pattern=r"^[^/:\s]+$")
    """The model's name in MLflow's registry."""
    alias: str = Field(min_length=1, pattern=r"^[A-Za-z_-]+$")
    """Points to the best version so far by the main metric on validation."""
    verify_rows: int | None = Field(ge=1)
    """Predictions that the exported model must repeat; null for all of them."""
