"""Write missing MLflow runs: `transformer sync`, and `python -m transformer.workflow.sync TASK` for one result.

The last stage runs the latter in a subprocess, so that it can be given up if the store does not respond.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from transformer.core.errors import UserError
from transformer.core.task import task_names
from transformer.core.unchanged import repository
from transformer.workflow.dvc import content_md5, file_system, md5_of_folder, require_outputs
from transformer.workflow.git import prefix
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

_NAMED = 3


class MissingError(Exception):
    """Files of a result are in neither git, DVC's cache nor its remote."""


def record(root: Path, task: str) -> str:
    """Write the run of a task's result in the workspace; return a message about what was done.

    Raises UserError when there is no result, or its files are not here, and what MLflow raises.
    """
    result = find_results(root, WORKSPACE, task).results[task]
    _require_complete(result)
    with files_of(result) as (folder, confirm):
        written = write_run(open_store(root, task), result, current_origin(root), folder, confirm)
    where = without_password(store_uri(repository(root) or root))
    return f"run {result.pipeline.key} {'written to' if written else 'is in'} {where}"


def _require_complete(result: Result) -> None:
    if not result.pipeline.complete:
        raise UserError(
            f"{result.task}: the result of {result.name} has no figures or converted models yet, and so no run:"
            f" `dvc repro report@{result.task}`"
        )


def sync(root: Path, *, echo: Callable[[str], None]) -> int:
    """Write the missing runs of the commits, the experiments and the workspace, oldest first. Return their number.

    Reports through `echo` what cannot be written, and writes the rest. Raises what MLflow raises if the store fails.
    """
    own = results_at(root, WORKSPACE, None)
    said: dict[str, str] = dict(own.partial)
    """By key, or task: why no run was written."""
    missing: dict[str, str] = {}
    stores: dict[str, Store] = {}
    done: set[str] = set()
    written = 0
    for result, origin in _sources(root, own.results):
        task, key = result.task, result.pipeline.key
        try:
            if task not in stores:
                stores[task] = open_store(root, task)
                done |= finished_keys(stores[task])
            if key in done or (result.commit and not result.pipeline.complete):
                continue
            _require_complete(result)
            with files_of(result) as (folder, confirm):
                written += write_run(stores[task], result, origin, folder, confirm)
            done.add(key)
            said.pop(key, None)
        except MissingError:
            said.pop(key, None)
            missing[key] = f"{task} of {result.name}"
        except UserError as error:
            said[key] = str(error)
        except (KeyError, TypeError, ValueError) as error:
            said[key] = (
                f"{task} of {result.name}: not recorded, since another version of this project made it ({error!r})"
            )
        except Exception as error:  # what MLflow, its database and the connection raise
            if task not in stores:
                raise
            finished_keys(stores[task])  # raises as well if it is not this result's fault
            said[key] = f"{task} of {result.name}: not recorded, since MLflow does not take it ({in_words(error)})"
    if missing:
        some = ", ".join([*missing.values()][:_NAMED]) + ", ..." * (len(missing) > _NAMED)
        said[""] = (
            f"{len(missing)} results not recorded ({some}): their files are not here; `dvc fetch --all-commits` brings"
            " them from a remote, `dvc exp pull` those of experiments"
        )
    for line in dict.fromkeys(said.values()):
        echo(line)
    return written


def _sources(root: Path, own: Mapping[str, Result]) -> Iterator[tuple[Result, Origin]]:
    """Yield every result with its origin, oldest first; one that is also in the workspace first with those files."""
    by_key = {result.pipeline.key: result for result in own.values()}
    for key, (result, made) in all_results(root).items():
        if result.task in task_names():
            origin = Origin(made.baseline, made.experiment, made.time)
            if (here := by_key.pop(key, None)) is not None:
                yield here, origin
            yield result, origin
    for result in by_key.values():
        yield result, current_origin(root)


@contextmanager
def files_of(result: Result) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Yield a folder with the result's files at their own paths, and a function that raises if they changed.

    Raises MissingError, and UserError if the workspace or what ran is another result.
    """
    task, outs = result.task, result.pipeline.outs
    reports = [path for path in outs if path.startswith(f"reports/{task}/")]
    wanted = [f"data/{task}/corpus", bundle_path(task), converted_path(task), *reports]
    if result.commit is None:
        confirm = partial(require_outputs, result.root, {path: outs[path] for path in wanted})
        confirm()
        yield result.root, confirm
        return
    if len(result.ran(remote=True)) < len(result.pipeline.records):
        raise MissingError
    if never := result.never_run(remote=True):
        raise UserError(never)
    near = result.root / ".dvc" / "tmp"
    near.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="sync-", dir=near) as folder:
        for path in [f"{wanted[0]}/provenance.json", *wanted[1:]]:
            _place(result, path, Path(folder, path))
        yield Path(folder), lambda: None


def _place(result: Result, path: str, target: Path) -> None:
    """Copy a file or folder of a commit's result; git's version may belong to another result."""
    target.parent.mkdir(parents=True, exist_ok=True)
    md5 = result.pipeline.outs.get(path)
    try:
        if md5 is not None and not md5.endswith(".dir"):
            target.write_bytes(result.read(path, remote=True) or b"")
        else:
            files = file_system(result.root, result.commit)
            files.get(f"{prefix(result.root)}{path}", str(target), recursive=True)
    except Exception as error:  # the clients of S3 and other remotes have errors of their own
        raise MissingError(path) from error
    if md5 not in (None, md5_of_folder(target) if target.is_dir() else content_md5(target.read_bytes())):
        raise MissingError(path)


def main() -> None:
    """Record one task's result; an error ends in one line and exit status 1."""
    (task,) = sys.argv[1:]
    try:
        print(record(Path.cwd(), task))
    except Exception as error:  # the boundary: what MLflow, its database and the connection raise
        sys.exit(in_words(error))


if __name__ == "__main__":
    main()
