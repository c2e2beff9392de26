"""Finding a result by its name."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.errors import UserError
from transformer.tracking.chain import LOCK, Chain, chains_in_lock
from transformer.tracking.git import blob, experiments, git, snapshots

WORKSPACE = "workspace"
_SHORT = 10  # digits of a commit
Figures = dict[str, float]
Row = dict[str, str]


@dataclass(frozen=True)
class Results:
    """The results of all tasks in one place: a commit's, or the workspace's."""

    root: Path
    name: str
    commit: str | None
    """None for the workspace."""
    chains: dict[str, Chain]
    """By task: what dvc.lock says of it, for complete results alone."""

    def figures(self, task: str) -> dict[str, Figures]:
        """The numbers of evaluation.json by split."""
        content = self._content(f"reports/{task}/evaluation.json")
        parsed: dict[str, dict[str, Any]] = json.loads(content) if content else {}
        numbers = {split: _numbers(values) for split, values in parsed.items()}
        return {split: values for split, values in numbers.items() if values}

    def predictions(self, task: str) -> dict[str, list[Row]]:
        """The rows of predictions.tsv by split; empty where neither DVC's cache nor its remote has the file."""
        path = f"reports/{task}/predictions.tsv"
        content = self._content(path) if self.commit is None else _from_dvc(self.root, path, self.commit)
        rows: dict[str, list[Row]] = {}
        for row in csv.DictReader(content.decode().split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE):
            rows.setdefault(row["split"], []).append(row)
        return rows

    def _content(self, path: str) -> bytes:
        return _content(self.root, self.commit, path)


def find_results(root: Path, name: str) -> Results:
    """What `name` means: `workspace`, a DVC experiment, a commit, branch or tag, or an MLflow row (its key's start).

    A row's name ends in its key, and its tag `row_key` is the whole of it. Raises UserError when there is none.
    """
    commit = None if name == WORKSPACE else _commit(root, name)
    chains = {chain.task: chain for chain in chains_in_lock(_content(root, commit, LOCK))}
    if not chains:
        raise UserError(f"{name} holds no complete result in {LOCK}: run `dvc repro` there and commit, or name another")
    return Results(root, name, commit, chains)


def results_before(root: Path, chain: Chain) -> Results | None:
    """The newest results, in the history of what is checked out, whose result of the chain's task is another one."""
    for commit in git(root, "log", "--format=%H", "HEAD", "--", LOCK).decode().split():
        chains = {found.task: found for found in chains_in_lock(blob(root, commit, LOCK))}
        if chain.task in chains and chains[chain.task].row_key() != chain.row_key():
            return Results(root, commit[:_SHORT], commit, chains)
    return None


def _commit(root: Path, name: str) -> str:
    by_experiment = {experiment: commit for commit, (experiment, _) in experiments(root).items()}
    if name in by_experiment:
        return by_experiment[name]
    if (
        found := git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        .decode()
        .strip()
    ):
        return found
    key = name.split()[-1] if name.split() else ""
    if len(key) >= 8 and (found := next(_with_row(root, key), "")):
        return found
    raise UserError(
        f"{name!r} is no commit, experiment or row: name `{WORKSPACE}`, what git knows, an experiment of"
        " `dvc exp list`, or a row by its name or tag `row_key` (rows that no commit holds are not found)"
    )


def _with_row(root: Path, key: str) -> Iterator[str]:
    for snapshot in snapshots(root):
        if any(chain.row_key().startswith(key) for chain in chains_in_lock(snapshot.lock)):
            yield snapshot.commit


def _content(root: Path, commit: str | None, path: str) -> bytes:
    """A file of the workspace or of git; empty where there is none."""
    if commit is not None:
        return blob(root, commit, path)
    file = root / path
    return file.read_bytes() if file.is_file() else b""


def _from_dvc(root: Path, path: str, commit: str) -> bytes:
    import dvc.api  # takes a second
    from dvc.exceptions import DvcException
    from scmrepo.exceptions import SCMError

    try:
        content: bytes = dvc.api.read(path, repo=str(root), rev=commit, mode="rb")
    except (DvcException, SCMError, OSError):
        return b""
    return content


def _numbers(values: Any) -> Figures:
    items = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in items if isinstance(value, int | float)}
