"""Reads the reports of another commit's result, for `evaluate.baseline`."""

from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.repository import repository
from transformer.workflow.git import blob, prefix
from transformer.workflow.pipeline import LOCK, pipelines

_REMEDY = "name another in `evaluate.baseline`, or null for none"


def read_committed(commit: str, path: Path) -> str:
    """Read a file under reports/TASK of a commit, from git, DVC's cache or its remote.

    Raises UserError when none has it, or it is of another model than the commit's, as after training alone.
    """
    import dvc.api  # it takes a second, needed only with a baseline

    root = repository(Path()) or Path()
    try:
        text: str = dvc.api.read(f"{prefix(root)}{path.as_posix()}", repo=str(root), rev=commit, encoding="utf-8")
    except Exception as error:  # the clients of S3 and other remotes have errors of their own
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} of commit {commit} is not available ({reason}): `dvc fetch` it, or {_REMEDY}"
        ) from error
    found = {each.task: each for each in pipelines(blob(root, commit, LOCK), commit)}
    if path.parent.name in found and "evaluate" in found[path.parent.name].stale:
        raise UserError(f"commit {commit} contains the predictions of another model than its own ({LOCK}): {_REMEDY}")
    return text
