"""The source `hub`: a dataset on the Hugging Face Hub at a pinned commit, read with the library `datasets`."""

import os
import sys
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.data.corpus import Corpus, Part
from transformer.data.files import arrow_rows, fields_of
from transformer.data.layouts import ALIASES, Columns

_BATCH = 1000
_QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "HF_HUB_VERBOSITY": "critical",
    "DATASETS_VERBOSITY": "critical",
}
_TIMEOUT = 10  # seconds without an answer
_WAYS_OUT = (
    "try again, or set HF_ENDPOINT to a mirror, or use local files (`source: files` with `path`, "
    "or `make repro PROFILE=... DATA=path`), or `source: sample`"
)


def read_hub(
    repository: str, *, revision: str, configuration: str | None, columns: Columns, scratch: Path, progress: bool
) -> Corpus:
    """Open a Hub dataset at a commit.

    configuration: of a dataset with several; None for its only or default one. columns: the columns of a row; others
    are ignored. scratch: an empty folder for the converted data, needed as long as the corpus is read (the downloads
    themselves stay in the Hub's own cache under HF_HOME). progress: show progress bars, on a terminal.
    Raises UserError when the Hub cannot be reached, or the dataset cannot be read or lacks the configuration or a
    column.
    """
    splits = _load(repository, revision=revision, configuration=configuration, cache=scratch, progress=progress)
    ours = {split: ALIASES.get(split, split) for split in splits}
    return Corpus(
        name=f"{repository} on the Hub",
        splits={
            # as for local files, `dev` is `validation`, unless there is another one
            split if [*ours.values()].count(name) > 1 else name: [
                _part(f"{repository}, {split}", splits[split], columns)
            ]
            for split, name in ours.items()
        },
        origin={"source": "hub", "repository": repository, "revision": revision}
        | ({"configuration": configuration} if configuration else {}),
    )


def _load(repository: str, *, revision: str, configuration: str | None, cache: Path, progress: bool) -> dict[str, Any]:
    _set_environment(progress=progress and sys.stderr.isatty())
    # Imported here: both take seconds, and read the environment on import.
    import datasets
    import huggingface_hub

    try:
        # Queried first, because `datasets` retries for over half a minute before it gives up on an unreachable Hub.
        huggingface_hub.HfApi().dataset_info(repository, revision=revision, timeout=_TIMEOUT)
        # Our own cache: with the shared one, an unreachable Hub means whatever commit happens to be cached.
        found = datasets.load_dataset(repository, configuration, revision=revision, cache_dir=str(cache))
    except Exception as error:  # the errors of `datasets`, the Hub's client, HTTP and Arrow have no common base class
        # A ValueError is what `datasets` says, with their names, where it needs or lacks a configuration.
        ways_out = f"set `configuration`, {_WAYS_OUT}" if type(error) is ValueError else _WAYS_OUT
        raise UserError(f"cannot load {repository} at {revision} from the Hub ({_fault(error)}); {ways_out}") from error
    return {str(split): rows for split, rows in found.items()}


def _set_environment(*, progress: bool) -> None:
    os.environ.update(_QUIET)
    if not progress:
        os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")


def _fault(error: BaseException) -> str:
    """Describe the cause in one short line. `datasets` hides errors in a file's content behind "an error occurred"."""
    if type(error).__name__ == "DatasetGenerationError" and error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _part(name: str, rows: Any, columns: Columns) -> Part:
    names = columns.of_table(name, fields_of(rows.features.arrow_schema))
    tables = rows.select_columns(names).with_format("arrow")
    labels = rows.features.get(columns.names.get("label", ""))
    return Part(
        name=name,
        read=lambda: arrow_rows(tables.iter(batch_size=_BATCH), columns),
        unit="row",
        label_names=tuple(getattr(labels, "names", None) or ()),
    )
