"""The parameters of an export."""

from pydantic import Field, field_validator

from transformer.core.schema import Section


class ExportParams(Section):
    """`export` of a task."""

    registered_name: str | None = Field(min_length=1, pattern=r"^[^/:\s'\"]+$")
    """The model's name in MLflow's registry; null: one of the task, the languages and the corpus."""
    alias: str = Field(min_length=1, pattern=r"^[A-Za-z_-]+$")
    """Points to the best version by the main metric on the validation split of the newest result."""
    verify_rows: int | None = Field(ge=1)
    """Predictions that the exported model must repeat; null for all of them."""

    @field_validator("alias")
    @classmethod
    def _is_free(cls, alias: str) -> str:
        if alias.lower() == "latest":
            raise ValueError("MLflow keeps `latest` for the newest version; name another, such as `best`")
        return alias
