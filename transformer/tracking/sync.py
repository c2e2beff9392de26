"""`transformer sync`: writes the rows that MLflow lacks, from what DVC has."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.core.errors import UserError
from transformer.core.files import has_conflict
from transformer.registry import TASKS
from transformer.results.chain import CONVERT, FIGURES, Chain, Stage, chains_in_lock, with_view
from transformer.results.dvc_inside import run_cache
from transformer.results.git import snapshots
from transformer.results.lockfile import LOCK, RESOLVE
from transformer.results.origin import Origin, current_origin, noted_origin
from transformer.results.runcache import chains_in_run_cache
from transformer.tracking.artifacts import has_files, has_model, local_folder
from transformer.tracking.location import locate
from transformer.tracking.mlflow_inside import ROWS
from transformer.tracking.moved import recorded_elsewhere
from transformer.tracking.store import locked, open_store, waiting

if TYPE_CHECKING:
    from dvc.repo import Repo
    from mlflow.entities import Run

    from transformer.tracking.store import Store
    from transformer.tracking.views import Views


@dataclass(frozen=True)
class _Known:
    """A result that DVC has a record of."""

    chain: Chain
    origin: Origin
    commit: str | None
    """A commit with its dvc.lock and the reports that are in git."""
    locked: bool = True
    """Whether it is in a dvc.lock, not only in the run cache."""


def sync(root: Path, *, echo: Callable[[str], None]) -> int:
    """Write the missing rows of the workspace, the commits, the experiments and the run cache. Returns their number.

    Results are written in the order in which they were made, so that a rebuilt registry has the same versions and
    the same best alias. Those whose files are missing are skipped, with one notice through `echo`.
    Raises what the tracking store or its connection raises.
    """
    from dvc.repo import Repo

    done: Counter[str] = Counter()
    with Repo(str(root)) as repo:
        every = [*_sources(root, run_cache(repo))]
        others = {known.chain.task for known in every} - {*TASKS}
        known = _distinct(root, [each for each in every if each.chain.task in TASKS])
        tasks = {result.chain.task for result in known} | {*_waiting(root)}
        opened = {task: _open(root, task) for task in sorted(tasks)}
        damaged = sum(len(rows) for recorded in opened.values() for rows in recorded.damaged.values())
        for result in known:
            done[_write(opened[result.chain.task], result, repo)] += 1
    _finish([*opened.values()], damaged, echo)
    if others:
        echo(f"results of {', '.join(sorted(others))} not looked at: the code here has no such task")
    if done["unrun"]:
        echo(
            f"{done['unrun']} results not recorded: dvc.lock has parameters for them that were never run, as"
            " `dvc exp save` and `dvc commit` write it; run `dvc repro --force` with these parameters"
        )
    if done["missing"]:
        echo(
            f"{done['missing']} older results of commits or experiments not recorded: their files are missing;"
            " run `dvc fetch --all-commits` with a remote that has them, then sync"
        )
    return done["written"]


def _waiting(root: Path) -> list[str]:
    """The tasks of which runs of short stages wait to be recorded."""
    return [folder.name for folder in waiting(root).glob("*") if folder.name in TASKS]


def _finish(opened: "list[_Recorded]", damaged: int, echo: Callable[[str], None]) -> None:
    """Place the aliases, and report how many of the damaged rows were repaired."""
    from transformer.tracking.alias import place_aliases
    from transformer.tracking.repair import notice

    if opened:
        with locked(opened[0].store.root):
            place_aliases(opened[0].store.client)
    rest = [row for recorded in opened for rows in recorded.damaged.values() for row in rows]
    if repaired := damaged - len(rest):
        echo(f"{repaired} rows repaired: files, or a registered version, were missing")
    if rest:
        echo(notice(rest))


@dataclass(frozen=True)
class _Recorded:
    """What the tracking store has for a task."""

    store: "Store"
    rows: "dict[str, Views]"
    """By key."""
    orphans: set[tuple[str, str | None]]
    damaged: "dict[str, list[Run]]"
    """By key: rows whose files or registered versions are missing."""


def _open(root: Path, task: str) -> _Recorded:
    from transformer.tracking.child import write_kept
    from transformer.tracking.repair import damaged_rows
    from transformer.tracking.rows import orphans
    from transformer.tracking.unique import settle_rows
    from transformer.tracking.views import recorded_views

    store = open_store(root, task)
    write_kept(store, task)
    with locked(root):
        settle_rows(store)
    return _Recorded(store, recorded_views(store), orphans(store), damaged_rows(store))


def _write(recorded: _Recorded, known: _Known, repo: "Repo") -> str:
    from transformer.results.content import Content, MissingContentError
    from transformer.tracking.repair import repair_row
    from transformer.tracking.rows import UnrunParametersError, executions, write_row
    from transformer.tracking.views import views

    chain = known.chain
    damaged = recorded.damaged.get(chain.row_key(), [])
    has = recorded.rows.get(chain.row_key())
    shown = has and all(new in (None, old) for new, old in zip(views(chain, Path(repo.root_dir)), has, strict=True))
    if shown and not damaged and not executions(chain) & recorded.orphans:
        return "there"
    try:
        content = Content(repo, chain, known.commit)
        while damaged:
            repair_row(recorded.store, damaged[0], chain, content, known.origin)
            damaged.pop(0)
        return "written" if write_row(recorded.store, chain, content, known.origin) else "there"
    except MissingContentError:
        return "there" if has else "missing"  # a damaged row has a notice of its own
    except UnrunParametersError:
        return "unrun"


def _distinct(root: Path, results: list[_Known]) -> list[_Known]:
    """Every distinct result, oldest first, with its origin by the rules in `origin.py`."""
    found: dict[str, _Known] = {}
    for known in results:
        key = known.chain.row_key()
        origin = noted_origin(root, key) or known.origin
        first = found.setdefault(key, _Known(known.chain, origin, known.commit))
        if known.locked:
            chain = _newest(first.chain, known.chain)
            found[key] = replace(first, chain=chain, commit=known.commit or first.commit)
        else:
            found[key] = replace(first, chain=_with_views(first.chain, known.chain.views, replacing=False))
    return sorted(found.values(), key=lambda known: known.origin.time)


def _newest(first: Chain, newer: Chain) -> Chain:
    """A result's first chain with what a newer lock has of what no key includes: its bundle and its views."""
    *above, export = first.stages
    chain = replace(first, stages=(*above, replace(export, outs=newer.stages[-1].outs)), views=())
    return _with_views(chain, (*first.views, *newer.views), replacing=True)


def _with_views(chain: Chain, views: Iterable[Stage], *, replacing: bool) -> Chain:
    for view in views:
        if replacing or chain.view(view.name) is None:
            chain = with_view(chain, view)
    return chain


def _sources(root: Path, run_cache: Path) -> Iterator[_Known]:
    """The results of all commits and experiments, of the workspace, and of the run cache."""
    for snapshot in snapshots(root):
        origin = Origin(snapshot.baseline, snapshot.experiment, snapshot.time)
        for chain in chains_in_lock(snapshot.lock):
            yield _Known(chain, origin, snapshot.commit)
    for chain in chains_in_lock(_workspace_lock(root)):
        yield _Known(chain, current_origin(root), None)
    for chain, time in chains_in_run_cache(run_cache):
        yield _Known(chain, Origin(None, None, time), None, locked=False)


def _workspace_lock(root: Path) -> bytes:
    path = root / LOCK
    lock = path.read_bytes() if path.is_file() else b""
    if has_conflict(lock):
        raise UserError(f"{path} has conflict markers: {RESOLVE}")
    return lock


def missing_rows(root: Path) -> bool:
    """Whether a result in the workspace lacks a row or a view of it, as when DVC restored a stage from its cache.

    Also whether its row lost its files, model or registered version. Reads the local database without importing
    MLflow; a server is not queried, and False is returned for it.
    """
    if any(any((waiting(root) / task).glob("*.json")) for task in _waiting(root)):
        return True
    chains = [chain for chain in chains_in_lock(_workspace_lock(root)) if chain.task in TASKS]
    try:
        location = locate(root)
    except UserError:  # opening the store will report it
        return True
    if location.database is None or not chains:
        return False
    if not location.database.is_file():
        return True
    try:
        connection = sqlite3.connect(f"{location.database.as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return True
    try:
        if recorded_elsewhere(location):
            return True
        rows = {key: rest for key, *rest in connection.execute(ROWS)}
        wanted = {chain.row_key(): [*map(chain.view_md5, (FIGURES, CONVERT))] for chain in chains}
        return not all(key in rows and _is_whole(views, *rows[key]) for key, views in wanted.items())
    except sqlite3.Error:
        return True
    finally:
        connection.close()


def _is_whole(
    views: list[str | None],
    figures: str | None,
    converted: str | None,
    artifacts: str,
    model: str | None,
    registered: int,
) -> bool:
    """Whether a row has these views and a registered model, and its files are where the database says."""
    files, logged = local_folder(artifacts), local_folder(model)
    return (
        all(new in (None, old) for new, old in zip(views, (figures, converted), strict=True))
        and bool(model and registered)
        and (files is None or has_files(files))
        and (logged is None or has_model(logged))
    )
