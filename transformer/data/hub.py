"""The source `hub`: a dataset on the Hugging Face Hub at a pinned commit, read with the library `datasets`."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.data.corpus import Corpus, Part, scratch_folder
from transformer.data.files import arrow_rows, columns_of
from transformer.data.layouts import ALIASES, Columns

_BATCH = 1000
_QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "HF_HUB_VERBOSITY": "critical",
    "DATASETS_VERBOSITY": "critical",
}
_NAMED = 12
"""Maximum configurations in a message."""
_TIMEOUT = 10  # seconds without an answer
_WAYS_OUT = (
    "try again, or set HF_ENDPOINT to a mirror, or use local files (`source: files` with `path`, "
    "or `make repro PROFILE=... DATA=path`), or `source: sample`"
)


@contextmanager
def open_hub(
    repository: str, *, revision: str, configuration: str | None, columns: Columns, scratch: Path, progress: bool
) -> Iterator[Corpus]:
    """Open a Hub dataset at a commit; it can be read until the block ends.

    configuration: of a dataset with several; None for its only or default one. columns: the columns of a row; others
    are ignored. scratch: a folder for the converted data, removed at the end (the downloads themselves stay in the
    Hub's own cache under HF_HOME). progress: show progress bars, on a terminal.
    Raises UserError when the Hub cannot be reached, or the dataset cannot be read or lacks the configuration or a
    column.
    """
    with scratch_folder(scratch):
        splits = _load(repository, revision=revision, configuration=configuration, cache=scratch, progress=progress)
        yield Corpus(
            name=f"{repository} on the Hub",
            splits={
                split: [_part(f"{repository}, {split}", rows, columns)]
                for split, rows in _by_our_names(repository, splits).items()
            },
            origin={"source": "hub", "repository": repository, "revision": revision}
            | ({"configuration": configuration} if configuration else {}),
        )


def _by_our_names(repository: str, splits: Mapping[str, Any]) -> dict[str, Any]:
    """Rename splits such as `dev` to `validation`, as for local files, unless a split has that name.

    Raises UserError for two others of one name.
    """
    found: dict[str, Any] = {}
    for split, rows in splits.items():
        ours = ALIASES.get(str(split), str(split))
        name = str(split) if ours in splits else ours
        if name in found:
            raise UserError(f"{repository} on the Hub has two splits for {name}: take it from local files with one")
        found[name] = rows
    return found


def _label_names(rows: Any, columns: Columns) -> Sequence[str]:
    """Return the class names of a dataset's labels; empty if it has none."""
    feature = rows.features.get(columns.names.get("label", ""))
    return tuple(getattr(feature, "names", None) or ())


def _load(repository: str, *, revision: str, configuration: str | None, cache: Path, progress: bool) -> dict[str, Any]:
    _set_environment(progress=progress and sys.stderr.isatty())
    # Imported here: both take seconds, and read the environment on import.
    import datasets
    import huggingface_hub

    try:
        # Queried first, because `datasets` retries for over half a minute before it gives up on an unreachable Hub.
        huggingface_hub.HfApi().dataset_info(repository, revision=revision, timeout=_TIMEOUT)
        # Our own cache: with the shared one, an unreachable Hub means whatever commit happens to be cached.
        return dict(datasets.load_dataset(repository, configuration, revision=revision, cache_dir=str(cache)))
    except Exception as error:  # the errors of `datasets`, the Hub's client, HTTP and Arrow have no common base class
        if type(error) is ValueError:  # what `datasets` says of configurations, among other things
            _check_configuration(repository, revision=revision, configuration=configuration)
        raise UserError(
            f"cannot load {repository} at {revision} from the Hub ({_fault(error)}); {_WAYS_OUT}"
        ) from error


def _check_configuration(repository: str, *, revision: str, configuration: str | None) -> None:
    """Raise UserError if the dataset has no such configuration, or has several and none is named."""
    import datasets

    try:
        names = datasets.get_dataset_config_names(repository, revision=revision)
        default = datasets.get_dataset_default_config_name(repository, revision=revision)
    except Exception:  # then the original error is the one to report
        return
    if (configuration or default) in names:
        return
    fault = f"no configuration {configuration}" if configuration else "several configurations"
    further = f" or one of {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    raise UserError(f"{repository} on the Hub has {fault}: set `configuration` to {', '.join(names[:_NAMED])}{further}")


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
    available = columns_of(rows.features.arrow_schema)
    if (top := columns.top(available)) is None:
        raise UserError(
            f"{name}: no column `{columns.missing(available)}` on the Hub (it has: {', '.join(available)}): name it in"
            " `columns`"
        )
    tables = rows.select_columns(top).with_format("arrow")
    return Part(
        name=name,
        read=lambda: arrow_rows(tables.iter(batch_size=_BATCH), name=name),
        unit="row",
        label_names=_label_names(rows, columns),
    )
