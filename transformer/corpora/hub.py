"""The source `hub`: a data set of the Hugging Face Hub at one commit, through the library `datasets`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from transformer.corpora.corpus import Corpus, Part, Row
from transformer.corpora.output import scratch_folder
from transformer.errors import UserError

_BATCH = 1000
_QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "HF_HUB_VERBOSITY": "critical",
    "DATASETS_VERBOSITY": "critical",
}
_TIMEOUTS = {"HF_HUB_ETAG_TIMEOUT": "10", "HF_HUB_DOWNLOAD_TIMEOUT": "20"}
_WAYS_OUT = (
    "try again, or set HF_ENDPOINT to a mirror, or use local files (`source: files` with `path`, "
    "or `make repro PROFILE=... DATA=path`), or `source: sample`"
)


@contextmanager
def open_hub(
    repository: str, *, revision: str, columns: Sequence[str], scratch: Path, progress: bool
) -> Iterator[Corpus]:
    """The corpus that a Hub data set holds at a commit; it can be read until the block ends.

    columns: the columns of a row; others are left out. scratch: a folder for the converted data, removed at the end
    (the downloads themselves stay in the Hub's own cache under HF_HOME). progress: show progress bars.
    Raises UserError when the Hub cannot be reached, or the data set cannot be read or lacks a column.
    """
    with scratch_folder(scratch):
        splits = _load(repository, revision=revision, cache=scratch, progress=progress)
        for split, rows in splits.items():
            if missing := [column for column in columns if column not in rows.column_names]:
                found = ", ".join(rows.column_names)
                raise UserError(f"{repository}, {split}: no column `{missing[0]}` on the Hub (it has: {found})")
        yield Corpus(
            name=f"{repository} on the Hub",
            splits={
                str(split): [Part(name=f"{repository}, {split}", read=partial(_rows, rows, columns), unit="row")]
                for split, rows in splits.items()
            },
            origin={"source": "hub", "repository": repository, "revision": revision},
        )


def _load(repository: str, *, revision: str, cache: Path, progress: bool) -> dict[str, Any]:
    _set_environment(progress=progress)
    import datasets  # takes seconds, and reads the environment when it is imported

    try:
        # A cache of our own: else an unreachable Hub is answered from the cache with whatever commit is there.
        return dict(datasets.load_dataset(repository, revision=revision, cache_dir=str(cache)))
    except Exception as error:  # what `datasets`, the Hub's client, HTTP and Arrow raise has no common base
        fault = " ".join(f"{type(error).__name__}: {_cause(error)}".split())
        raise UserError(f"cannot load {repository} at {revision} from the Hub ({fault[:300]}); {_WAYS_OUT}") from error


def _set_environment(*, progress: bool) -> None:
    os.environ.update(_QUIET)
    for name, value in _TIMEOUTS.items():
        os.environ.setdefault(name, value)
    if not progress:
        os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")


def _cause(error: BaseException) -> BaseException:
    """`datasets` wraps what went wrong in "an error occurred": the innermost cause says what."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _rows(rows: Any, columns: Sequence[str]) -> Iterator[Row]:
    for batch in rows.select_columns(list(columns)).iter(batch_size=_BATCH):
        for values in zip(*(batch[column] for column in columns), strict=True):
            yield dict(zip(columns, values, strict=True))
