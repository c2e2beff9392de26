"""Putting a whole profile in place as params.yaml, and pointing its corpora at local files."""

import hashlib
import io
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.core.params import read_params
from transformer.core.task import open_task, words_of
from transformer.registry import TASKS

PARAMS = Path("params.yaml")
_PLACED = Path(".dvc", "tmp", "placed-profile")  # the checksum of what was last put in place: such a file is no edit
_VOCABULARY = "bert-base-uncased"


def use_profile(root: Path, name: str | None, data: Path | None) -> bool:
    """Make `profiles/<name>.yaml` (None: the params.yaml as it is) the params.yaml, with corpora from `data` if given.

    Returns whether the file changed. Raises UserError when there is no such profile or folder, and when params.yaml
    holds edits that are neither committed nor put there by this function.
    """
    source = root / PARAMS if name is None else root / "profiles" / f"{name}.yaml"
    if not source.is_file():
        known = ", ".join(sorted(path.stem for path in (root / "profiles").glob("*.yaml")))
        raise UserError(f"there is no profile `{name}`: choose one of {known}")
    wanted = source.read_bytes() if data is None else _with_local_corpora(source, data)
    current = (root / PARAMS).read_bytes() if (root / PARAMS).exists() else b""
    if wanted == current:
        return False
    if name is not None and current and not (_committed(root, current) or _placed(root, current)):
        raise UserError(
            "params.yaml has edits that are not committed: commit them, or drop them with `git checkout params.yaml`"
        )
    with atomic_write(root / PARAMS) as stream:
        stream.write(wanted)
    with atomic_write(root / _PLACED) as stream:
        stream.write(_checksum(wanted).encode())
    return True


def _with_local_corpora(source: Path, data: Path) -> bytes:
    """The profile with source `files` for each corpus that `data` holds, and its vocab.txt in place of the Hub's."""
    read_params(source)  # for its one-line error
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    content: Any = yaml.load(source.read_text(encoding="utf-8"))
    names = {task: (*words_of(open_task(task)).folders, task) for task in TASKS}
    folders = {
        task: next((data / name for name in known if (data / name).is_dir()), None) for task, known in names.items()
    }
    if not any(folders.values()):
        listed = ", ".join(name for known in names.values() for name in known)
        raise UserError(f"{data} has none of the folders {listed}: name the folder that holds one of them")
    for task, folder in folders.items():
        if folder is None:
            continue
        content[task]["download"].update(source="files", path=str(folder.resolve()))
        if content[task]["vocab"]["source"] == "hub" and (data / _VOCABULARY / "vocab.txt").is_file():
            content[task]["vocab"].update(source="path", path=str((data / _VOCABULARY).resolve()))
    stream = io.BytesIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _committed(root: Path, current: bytes) -> bool:
    head = subprocess.run(["git", "show", f"HEAD:./{PARAMS}"], cwd=root, capture_output=True, check=False)
    return head.returncode == 0 and head.stdout == current


def _placed(root: Path, current: bytes) -> bool:
    marker = root / _PLACED
    return marker.is_file() and marker.read_text(encoding="utf-8") == _checksum(current)


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
