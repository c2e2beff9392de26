"""The parameters of judging answers, which every task's `evaluate` has beside those of making them."""

import re
import reprlib

from pydantic import Field, field_validator

from transformer.core.schema import Section

COMMIT = re.compile(r"[0-9a-f]{7,40}")
"""The id of a commit."""
_FILE = re.compile(r"[\w][\w.-]*\.tsv")


class ScoringParams(Section):
    """How answers are judged: no leaf of it changes an answer."""

    bootstrap_samples: int = Field(ge=0, le=1_000_000)
    """Resamples of the test sentences behind every interval and p value; 0 for neither."""
    baseline: str | None
    """The result to compare with: a commit's id, or a file in `data/local/baseline/TASK`; null for none."""

    @field_validator("baseline")
    @classmethod
    def _means_the_same_for_ever(cls, baseline: str | None) -> str | None:
        if baseline is None or COMMIT.fullmatch(baseline) or _FILE.fullmatch(baseline):
            return baseline
        raise ValueError(
            "baseline must be a commit's id (`git rev-parse NAME` gives that of a branch or tag, which may move) or the"
            f" name of a .tsv file in data/local/baseline/, not {reprlib.repr(baseline)}"
        )
