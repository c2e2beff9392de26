"""Where a result comes from: the commit it was made on, and the experiment's name.

The rules, the same when a stage ends and when `sync` rebuilds a row; the first that applies wins:

1. what was noted on this machine when the result's row was first written (`.dvc/tmp/tracking/<row key>.json`);
2. the oldest commit or experiment whose dvc.lock has the result: the commit that it was made on top of (its first
   parent; for an experiment, the baseline) and the experiment's name, if any;
3. for a result that only the workspace has: the current experiment and its baseline, or the checked-out commit;
4. nothing.

So `git.commit` always names the commit that was checked out when the result was made, if that can be known.
`uncommitted_code` tells whether the result was made with code that differs from that commit's.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from transformer.core.code import changes_in
from transformer.core.files import atomic_write
from transformer.results import git
from transformer.results.chain import Chain, chains_in_lock
from transformer.results.code import code_of, tree_at
from transformer.results.workspace import content_md5


@dataclass(frozen=True)
class Origin:
    """A result's commit and experiment, and when it was made (seconds)."""

    commit: str | None
    experiment: str | None
    time: int

    def tags(self) -> dict[str, str]:
        """The tags for an MLflow run, without those whose value is unknown."""
        tags = {"git.commit": self.commit, "dvc.experiment": self.experiment}
        return {name: value for name, value in tags.items() if value}


def current_origin(root: Path) -> Origin:
    """The origin of what is running: the experiment that DVC names in the environment, or the checked-out commit."""
    commit = os.environ.get("DVC_EXP_BASELINE_REV") or git.head(root)
    return Origin(commit, os.environ.get("DVC_EXP_NAME"), int(time.time()))


def noted_origin(root: Path, row_key: str) -> Origin | None:
    """The origin noted when the row was first written; None if that was not on this machine."""
    try:
        return Origin(**json.loads(_note(root, row_key).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def origin_of(root: Path, chain: Chain) -> Origin:
    """Where the workspace's result comes from, by the rules above."""
    if noted := noted_origin(root, chain.row_key()):
        return noted
    if found := _first_committed(root, chain):
        snapshot, _ = found
        return Origin(snapshot.baseline, snapshot.experiment, snapshot.time)
    return current_origin(root)


def note_origin(root: Path, row_key: str, origin: Origin) -> None:
    """Note a row's origin: git forgets removed experiments, and does not record what was checked out when."""
    with atomic_write(_note(root, row_key)) as stream:
        stream.write(json.dumps(asdict(origin)).encode())


def uncommitted_code(root: Path, chain: Chain, commit: str | None) -> bool:
    """Whether a result was made with code that differs from its commit's; False if git does not have the commit.

    Determined from dvc.lock and git, so it remains true after the changes are stashed, committed or undone.
    """
    if commit is None or not git.git(root, "cat-file", "-t", commit):
        return False
    # `transformer accept` puts other code into dvc.lock: the oldest commit with the result has what made it.
    found = _first_committed(root, chain)
    made = found[1] if found else chain
    codes, tree = code_of(root, found[0].commit if found else None, made), tree_at(root, commit)
    lost = {path: md5 for path, md5 in made.code.items() if path not in codes}
    return any(changes_in(tree, code) for code in codes.values()) or any(
        content_md5(git.blob(root, commit, path)) != md5 for path, md5 in lost.items()
    )


def _first_committed(root: Path, chain: Chain) -> tuple[git.Snapshot, Chain] | None:
    """The oldest dvc.lock that has the chain's result, and the chain in it."""
    key, hashes = chain.row_key(), _hashes(chain)
    for snapshot in git.snapshots(root):
        if any(md5 not in snapshot.lock for md5 in hashes):
            continue  # parsing a dvc.lock takes a tenth of a second, and a long history has hundreds
        for held in chains_in_lock(snapshot.lock):
            if held.row_key() == key:
                return snapshot, held
    return None


def _hashes(chain: Chain) -> list[bytes]:
    """Those of outputs that every dvc.lock with the chain's result contains (see `Chain.row_key`)."""
    return [md5.encode() for stage in chain.stages if stage.name != "export" for md5 in stage.outs.values()]


def _note(root: Path, row_key: str) -> Path:
    return root / ".dvc" / "tmp" / "tracking" / f"{row_key}.json"
