"""Finds results by name."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.code import ran_path
from transformer.core.errors import UserError
from transformer.core.files import has_conflict, table_rows
from transformer.core.params import read_params
from transformer.results.chain import Chain, all_chains, chains_in_lock
from transformer.results.code import code_of, newer_code
from transformer.results.dvc_inside import cached_object, experiment_state
from transformer.results.git import blob, experiments, git, head, prefix, snapshots
from transformer.results.lockfile import LOCK, RESOLVE, require_valid
from transformer.results.partial import (
    accepted,
    accepted_in_words,
    changed_in_words,
    claim_in_words,
    edited_in_words,
    in_words,
    never_run,
)
from transformer.results.workspace import changed_since, content_md5, not_as_locked, of_chain

if TYPE_CHECKING:
    from dvc.repo import Repo

WORKSPACE = "workspace"
_SHORT = 10  # digits of a commit
_WITHOUT_RESULT = {
    "running": "is still running: compare it when its last stage has ended",
    "queued": "waits in the queue: `dvc queue start` runs it; compare it when `dvc queue status` says Success",
    "failed": "failed, so it has no result: `dvc queue logs {name}` says why",
}
"""What to say about an experiment without a result, by DVC's state of it."""
Figures = dict[str, float]
Row = dict[str, str]


@dataclass(frozen=True)
class Results:
    """The results of all tasks at a commit or in the workspace."""

    root: Path
    name: str
    commit: str | None
    """None for the workspace."""
    chains: dict[str, Chain]
    """By task; only consistent results."""
    partial: dict[str, str]
    """By task: why its stages in dvc.lock are not a consistent result, and what to run."""

    def figures(self, task: str) -> dict[str, Figures]:
        """The metrics in evaluation.json by split. Raises UserError when the file is not the result's own."""
        numbers = {split: _numbers(values) for split, values in self.evaluation(task).items()}
        return {split: values for split, values in numbers.items() if values}

    def evaluation(self, task: str) -> dict[str, dict[str, Any]]:
        """The parsed evaluation.json; empty if a commit has none. Raises UserError when it is not the result's own."""
        content = self._content(task, f"reports/{task}/evaluation.json")
        parsed: dict[str, dict[str, Any]] = json.loads(content) if content else {}
        return parsed

    def predictions(self, task: str) -> dict[str, list[Row]]:
        """The rows of predictions.tsv by split; empty if neither DVC's cache nor its remote has the file.

        Raises UserError when the workspace's file is not the result's own.
        """
        path = f"reports/{task}/predictions.tsv"
        content = self._content(task, path) if self.commit is None else _from_dvc(self.root, path, self.commit)
        rows: dict[str, list[Row]] = {}
        for row in table_rows(content.decode().split("\n")):
            rows.setdefault(row["split"], []).append(row)
        return rows

    def unrun(self, task: str) -> str | None:
        """Why a result is not that of the parameters, code and data that are there; None if it is.

        Raises UserError when params.yaml cannot be read.
        """
        chain = self.chains[task]
        if self.commit is not None:
            newer = changed_in_words(chain, newer_code(self.root, self.commit, chain), self.name)
        else:
            edited = edited_in_words(chain, read_params(self.root / "params.yaml"))
            newer = edited or changed_in_words(chain, of_chain(chain, self._changed), f"the {WORKSPACE}")
        return newer or accepted_in_words(chain, self.accepted(task), self.name)

    def accepted(self, task: str) -> list[str]:
        """The stages whose code in dvc.lock is not what ran, as far as their records are here."""
        chain = self.chains[task]
        return accepted(chain, _reader(self.root, self.commit, chain))

    def code(self, task: str) -> dict[str, dict[str, Any]]:
        """The fingerprints of the result's code by path, as far as they are here."""
        return code_of(self.root, self.commit, self.chains[task])

    @cached_property
    def _changed(self) -> dict[str, list[str]]:
        """As `changed_since`; nothing if DVC cannot say."""
        from dvc.exceptions import DvcException
        from dvc.repo import Repo

        try:
            with Repo(str(self.root)) as repo:
                return changed_since(repo)
        except (DvcException, OSError):
            return {}

    def _content(self, task: str, path: str) -> bytes:
        """A file of the result; empty if a commit has none."""
        content, locked = _content(self.root, self.commit, path), self.chains[task].outs.get(path)
        if locked in (None, content_md5(content)) or (self.commit is not None and not content):
            return content
        if self.commit is not None:
            raise UserError(f"{path} at {self.name} is not what {LOCK} says there: choose another commit")
        raise UserError(not_as_locked(self.root, path, missing=not content))


def find_results(root: Path, name: str, task: str | None = None) -> Results:
    """Resolve `name`: `workspace`, a DVC experiment, a commit, branch or tag, or an MLflow row by (part of) its key.

    A row's name ends in the start of its key, and its tag `row_key` is all of it. Raises UserError when there is no
    result, or none for `task`; if the stages in dvc.lock do not belong together, the message says what to run.
    """
    results = results_at(root, name, None if name == WORKSPACE else commit_of(root, name))
    if task in results.chains or (task is None and results.chains):
        return results
    if partial := [line for other, line in results.partial.items() if task in (None, other)]:
        raise UserError("; ".join(partial))
    what = f"no complete result of {task}" if task else "no complete result"
    raise UserError(f"{name} has {what} in {LOCK}: run `dvc repro` there and commit, or choose another")


def results_at(root: Path, name: str, commit: str | None) -> Results:
    """The results at a commit, or in the workspace (None); there may be none.

    Raises UserError when dvc.lock has conflict markers or is not valid YAML.
    """
    lock = _content(root, commit, LOCK)
    if has_conflict(lock):
        raise UserError(f"{LOCK} of {name} has conflict markers: {RESOLVE}")
    whole: dict[str, Chain] = {}
    partial: dict[str, str] = {}
    for chain in all_chains(lock):
        if chain.stale:
            partial[chain.task] = in_words(chain, name)
        elif claimed := never_run(chain, _reader(root, commit, chain)):
            partial[chain.task] = claim_in_words(chain, claimed, name)
        else:
            whole[chain.task] = chain
    if lock and not whole and not partial:
        require_valid(lock, name)
    return Results(root, name, commit, whole, partial)


def _reader(root: Path, commit: str | None, chain: Chain) -> Callable[[str], bytes | None]:
    """A function that reads an output of the chain, or a file in one that is a folder.

    It returns None if the file is missing or not dvc.lock's, and for one in a folder that DVC's cache does not have.
    """

    def read(path: str) -> bytes | None:
        known = chain.outs | {ran_path(stage.name, chain.task): stage.ran for stage in chain.executed if stage.ran}
        md5 = known[path] if path in known else _md5_in_folder(root, chain, path)
        content = _content(root, commit, path)
        if content_md5(content) != md5:  # DVC's files are not in git, and the workspace may have another result's
            content = _cached(root, md5) if md5 else b""
        return content or None

    return read


def _md5_in_folder(root: Path, chain: Chain, path: str) -> str | None:
    """The MD5 of a file in an output that is a folder; None if DVC's cache does not have the folder."""
    md5 = next((md5 for out, md5 in chain.outs.items() if path.startswith(f"{out}/") and md5.endswith(".dir")), None)
    listing = _cached(root, md5) if md5 else b""
    entries = json.loads(listing) if listing else ()
    return next((entry["md5"] for entry in entries if path.endswith(f"/{entry['relpath']}")), None)


def _cached(root: Path, md5: str) -> bytes:
    """The content with this hash in DVC's cache; empty if it is not there."""
    from dvc.exceptions import DvcException

    try:
        return cached_object(_repo(root.resolve()), md5).read_bytes()
    except (DvcException, OSError):
        return b""


@lru_cache(maxsize=1)
def _repo(root: Path) -> "Repo":
    """DVC's repository, opened once for all files: each time takes 40 ms."""
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        return repo


def results_before(root: Path, chain: Chain) -> Results | None:
    """The newest results in HEAD's history whose result for the chain's task differs from the chain.

    Passed over are commits of dvc.lock without the reports that belong to it, or with parameters that were never run.
    """
    for commit in git(root, "log", "--format=%H", "HEAD", "--", LOCK).decode().split():
        found = next((each for each in chains_in_lock(blob(root, commit, LOCK)) if each.task == chain.task), None)
        if found is None or found.row_key() == chain.row_key() or never_run(found, _reader(root, commit, found)):
            continue
        results = Results(root, commit[:_SHORT], commit, {chain.task: found}, {})
        with suppress(UserError):
            results.evaluation(chain.task)
            return results
    return None


def commit_of(root: Path, name: str) -> str:
    """The commit of a git revision, DVC experiment or MLflow row. Raises UserError if there is none."""
    revision = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found := git(root, *revision).decode().strip() or _experiment(root, name):  # in DVC's order
        return found
    key = name.split()[-1] if name.split() else ""
    if len(key) >= 8 and (found := next(_with_row(root, key), "")):
        return found
    if (state := _experiment_state(root, name)) in _WITHOUT_RESULT:
        raise UserError(f"experiment {name!r} {_WITHOUT_RESULT[state].format(name=name)}")
    raise UserError(
        f"{name!r} is not a commit, experiment or MLflow run: give `{WORKSPACE}`, a git revision, an experiment from"
        " `dvc exp list`, or a run's name or tag `row_key` (a run can be found only if a commit has its result)"
    )


def _experiment(root: Path, name: str) -> str | None:
    """The commit of the experiment with this name: like DVC, the one based on HEAD, else the only one."""
    found = {baseline: commit for commit, (named, baseline) in experiments(root).items() if named == name}
    checked_out = head(root)
    if checked_out in found:
        return found[checked_out]
    if len(found) > 1:
        commits = ", ".join(commit[:_SHORT] for commit in found.values())
        raise UserError(f"{len(found)} experiments are named {name!r}: choose one by its commit ({commits})")
    return next(iter(found.values()), None)


def _experiment_state(root: Path, name: str) -> str | None:
    from dvc.exceptions import DvcException
    from dvc.repo import Repo  # takes a second to import

    try:
        with Repo(str(root)) as repo:
            return experiment_state(repo, name)
    except (DvcException, OSError):
        return None


def _with_row(root: Path, key: str) -> Iterator[str]:
    for snapshot in snapshots(root):
        if any(chain.row_key().startswith(key) for chain in chains_in_lock(snapshot.lock)):
            yield snapshot.commit


def _content(root: Path, commit: str | None, path: str) -> bytes:
    """A file's content in the workspace or at a commit; empty if there is none."""
    if commit is not None:
        return blob(root, commit, path)
    file = root / path
    return file.read_bytes() if file.is_file() else b""


def _from_dvc(root: Path, path: str, commit: str) -> bytes:
    import dvc.api  # takes a second to import

    try:
        content: bytes = dvc.api.read(f"{prefix(root)}{path}", repo=str(root), rev=commit, mode="rb")
    except Exception:  # the clients of S3 and other remotes have errors of their own
        return b""
    return content


def _numbers(values: Any) -> Figures:
    items = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in items if isinstance(value, int | float)}
