"""Where a result comes from: the commit it was made on, and the experiment's name.

The rule, the same when a stage ends and when `sync` rebuilds a row, in this order:

1. what was noted on this machine when the result's row was first written (`.dvc/tmp/tracking/<row key>.json`);
2. the oldest commit or experiment whose dvc.lock holds the result: the commit it was made on top of (its first
   parent; for an experiment the baseline) and, for an experiment, its name;
3. for a result that only the workspace holds: the experiment that runs now and its baseline, or the commit checked out;
4. nothing.

So `git.commit` always names the commit that was checked out when the result was made, as far as that can be known.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from transformer.files import atomic_write
from transformer.tracking.git import head


@dataclass(frozen=True)
class Origin:
    """A result's commit and experiment, and when it was made (seconds)."""

    commit: str | None
    experiment: str | None
    time: int

    def tags(self) -> dict[str, str]:
        """The tags of a run; what is not known is left out."""
        tags = {"git.commit": self.commit, "dvc.experiment": self.experiment}
        return {name: value for name, value in tags.items() if value}


def current_origin(root: Path) -> Origin:
    """Of what runs now: the experiment that DVC names in the environment, or the commit checked out."""
    commit = os.environ.get("DVC_EXP_BASELINE_REV") or head(root)
    return Origin(commit, os.environ.get("DVC_EXP_NAME"), int(time.time()))


def noted_origin(root: Path, row_key: str) -> Origin | None:
    """What was noted when the row was first written, if it was on this machine."""
    try:
        return Origin(**json.loads(_note(root, row_key).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def note_origin(root: Path, row_key: str, origin: Origin) -> None:
    """Note the origin of a row: git keeps neither an experiment that was removed nor what was checked out when."""
    with atomic_write(_note(root, row_key)) as stream:
        stream.write(json.dumps(asdict(origin)).encode())


def _note(root: Path, row_key: str) -> Path:
    return root / ".dvc" / "tmp" / "tracking" / f"{row_key}.json"
