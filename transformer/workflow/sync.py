"""Writes the runs that MLflow lacks: `transformer sync`, and `python -m transformer.workflow.sync TASK` for one result.

The last stage runs the latter in a process of its own, so that a store that does not answer can be given up.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.repository import repository
from transformer.registry import TASKS
from transformer.workflow.dvc import file_system, require_outputs
from transformer.workflow.git import prefix, snapshots
from transformer.workflow.mlflow import (
    Store,
    finished_keys,
    in_words,
    open_store,
    store_uri,
    without_password,
    write_run,
)
from transformer.workflow.pipeline import bundle_path, converted_path
from transformer.workflow.results import WORKSPACE, Result, all_results, find_results, results_at
from transformer.workflow.run import Origin, current_origin


class MissingError(Exception):
    """Files of a result are in neither git, DVC's cache nor its remote."""


def record(root: Path, task: str) -> str:
    """Write the run of a task's result in the workspace; returns what was done, in words.

    Raises UserError when there is no result, or its files are not here, and what MLflow raises.
    """
    result = find_results(root, WORKSPACE, task).results[task]
    with files_of(result) as folder:
        written = write_run(open_store(root, task), result, current_origin(root), folder)
    where = without_password(store_uri(repository(root) or root))
    return f"run {result.pipeline.key} {'written to' if written else 'is in'} {where}"


def sync(root: Path, *, echo: Callable[[str], None]) -> int:
    """Write the missing runs of the commits, the experiments and the workspace, oldest first. Returns their number.

    Results whose files are missing are skipped, with one notice through `echo`. Raises what MLflow raises.
    """
    stores: dict[str, Store] = {}
    done: dict[str, set[str]] = {}
    written, missing, others = 0, [], set()
    for result, origin in _sources(root):
        task, key = result.task, result.pipeline.key
        if task not in TASKS:
            others.add(task)
            continue
        if task not in stores:
            stores[task] = open_store(root, task)
            done[task] = finished_keys(stores[task])
        if key in done[task]:
            continue
        try:
            with files_of(result) as folder:
                written += write_run(stores[task], result, origin, folder)
        except UserError as error:
            echo(str(error))
        except MissingError:
            missing.append(f"{task} of {result.name}")
        done[task].add(key)
    for line in results_at(root, WORKSPACE, None).partial.values():
        echo(line)
    if others:
        echo(f"results of {', '.join(sorted(others))} not looked at: the code here has no such task")
    if missing:
        echo(
            f"{len(missing)} results not recorded ({', '.join(missing[:3])}{', ...' * (len(missing) > 3)}): their files"
            " are not here; `dvc fetch --all-commits` brings them from a remote, `dvc exp pull` those of experiments"
        )
    return written


def _sources(root: Path) -> Iterator[tuple[Result, Origin]]:
    """Every complete result, oldest first, with where it was made."""
    times = {snapshot.commit: snapshot.time for snapshot in snapshots(root)}
    for result, baseline, experiment in all_results(root).values():
        if result.pipeline.complete and result.commit:
            yield result, Origin(baseline, experiment, times[result.commit])
    for result in results_at(root, WORKSPACE, None).results.values():
        if result.pipeline.complete:
            yield result, current_origin(root)


@contextmanager
def files_of(result: Result) -> Iterator[Path]:
    """A folder that has the result's files at their own paths. Raises MissingError, or UserError in the workspace."""
    task, outs = result.task, result.pipeline.outs
    reports = [path for path in outs if path.startswith(f"reports/{task}/")]
    wanted = [f"data/{task}/corpus", bundle_path(task), converted_path(task), *reports]
    if result.commit is None:
        require_outputs(result.root, {path: outs[path] for path in wanted})
        yield result.root
        return
    with tempfile.TemporaryDirectory(prefix="sync-", dir=result.root / ".dvc" / "tmp") as folder:
        files, above = file_system(result.root, result.commit), prefix(result.root)
        for path in [f"{wanted[0]}/provenance.json", *wanted[1:]]:
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                if outs.get(path, ".dir").endswith(".dir"):
                    files.get(f"{above}{path}", str(target), recursive=True)
                elif (content := result.read(path)) is not None:  # git may have another result's
                    target.write_bytes(content)
            except Exception as error:  # the clients of S3 and other remotes have errors of their own
                raise MissingError(path) from error
            if not target.exists():
                raise MissingError(path)
        yield Path(folder)


def main() -> None:
    """Record one task's result; an error ends in one line and exit status 1."""
    (task,) = sys.argv[1:]
    try:
        print(record(Path.cwd(), task))
    except Exception as error:  # the boundary: what MLflow, its database and the connection raise
        sys.exit(in_words(error))


if __name__ == "__main__":
    main()
