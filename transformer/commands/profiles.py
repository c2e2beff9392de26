"""Write a profile to params.yaml, and point its corpora at local files.

`profiles/NAME.yaml` contains what differs from the default. The default is the params.yaml whose first line says so.
While a profile is in place that line differs, and the default is the newest committed params.yaml that has it.
"""

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, reading
from transformer.core.params import parse, require_no_conflict
from transformer.core.task import open_task, task_names
from transformer.workflow import git

PARAMS = Path("params.yaml")
DEFAULT_HEAD = "# The default"
"""Prefix of the default's first line; a profile's differs."""
_PLACED = Path(".dvc", "tmp", "placed-profile")  # checksum of the last profile written, to tell it from an edit


def committed_default(root: Path) -> str:
    """Return the newest committed params.yaml whose first line marks it as the default. Raises UserError.

    One from a merged branch counts if it is a later state of this branch's own: an upstream's new default is there
    only, where a profile was in place here.
    """
    own = next(_defaults(root, "--first-parent"), None)
    for commit, text in _defaults(root, "--full-history"):
        if own is None or git.git(root, "merge-base", own[0], commit).decode().strip() == own[0]:
            return text
    raise UserError(
        f"no commit here has the default params.yaml (its first line starts with `{DEFAULT_HEAD}`): fetch the whole"
        " history with `git fetch --unshallow`, or commit one"
    )


def _defaults(root: Path, history: str) -> Iterator[tuple[str, str]]:
    """Yield the commits of a default params.yaml, newest first; history: an option of rev-list."""
    for commit in git.git(root, "rev-list", history, "HEAD", "--", str(PARAMS)).decode().split():
        text = git.blob(root, commit, str(PARAMS)).decode("utf-8-sig", errors="replace")
        if text.startswith(DEFAULT_HEAD):
            yield commit, text


def is_committed(root: Path, current: bytes) -> bool:
    """True if the checked-out commit has this params.yaml."""
    return git.blob(root, "HEAD", str(PARAMS)) == current


def is_placed(root: Path, current: bytes) -> bool:
    """True if `note_placed` noted this params.yaml."""
    marker = root / _PLACED
    return marker.is_file() and marker.read_bytes() == _checksum(current).encode()


def note_placed(root: Path, written: bytes | None) -> None:
    """Note the params.yaml that was written; None: it has edits, which the next profile must not overwrite."""
    if written is None:
        (root / _PLACED).unlink(missing_ok=True)
        return
    with atomic_write(root / _PLACED) as stream:
        stream.write(_checksum(written).encode())


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


DEFAULT = "default"
"""Name of the profile that changes nothing."""
_LOCAL_HEAD = "# Local corpora; else the default, which `transformer profile default` restores."
_KIND = "kind"
_VOCABULARY = "bert-base-uncased"

FROM_NOTHING: Mapping[str, Mapping[str, str]] = {
    "vocab": {"source": "trained", "path": "data/local/vocabulary"},
    "model": {"init": "random", "pretrained": "data/local/none"},
}
"""Parameters of a classifier without a pretrained language model, by section."""
Values = MutableMapping[str, Any]


def use_profile(root: Path, name: str | None, data: Path | None) -> bool:
    """Write profile `name` (None: keep the current parameters) to params.yaml, with corpora from `data` if given.

    The profile is merged into the committed default, whatever profile is in place or committed. Returns whether the
    file changed. Raises UserError when neither is given or the one given does not exist, when the profile names an
    unknown parameter, and when params.yaml has edits that are neither committed nor written by this function.
    """
    if name is None and data is None:
        raise UserError(f"say which profile: {_known(root)}")
    text = _read(root / PARAMS) if name is None else _laid_over(root, name, committed_default(root))
    wanted = (text if data is None else _no_default(with_local_corpora(text, data))).encode()
    with reading(PARAMS):
        current = (root / PARAMS).read_bytes() if (root / PARAMS).exists() else b""
    if wanted == current:
        return False
    require_no_conflict(current, PARAMS)
    edited = bool(current) and not (is_committed(root, current) or is_placed(root, current))
    if name is not None and edited:
        raise UserError(
            "params.yaml has edits that are not committed: commit them, or drop them with `git checkout params.yaml`"
        )
    with atomic_write(root / PARAMS) as stream:
        stream.write(wanted)
    note_placed(root, None if edited else wanted)
    return True


def _no_default(params: str) -> str:
    """Return the parameters with a first line that does not mark them as the default, in case they are committed."""
    first, end, rest = params.partition("\n")
    return f"{_LOCAL_HEAD}{end}{rest}" if first.startswith(DEFAULT_HEAD) else params


def set_back(root: Path, before: bytes) -> list[str]:
    """Return the sections of params.yaml that differed from the default in `before`, its old content, but not now."""
    default, now = (_load(text, PARAMS) for text in (committed_default(root), _read(root / PARAMS)))
    try:
        then = _load(before.decode(), PARAMS)
    except (UserError, UnicodeDecodeError):  # nothing to lose
        return []
    return [name for name in default if name in then and then[name] != default[name] == now[name]]


def merged_values(root: Path, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default with these values, as if they were the profile `name`. Raises UserError."""
    content = _load(default_params(root), PARAMS)
    _lay_over(content, _load(_dump(values), PARAMS), "", _profile_path(name))
    merged: dict[str, Any] = parse(_dump(content))
    return merged


def write_profile(root: Path, name: str, values: Mapping[str, Any], *, heading: str) -> Path:
    """Write `profiles/NAME.yaml`. Raises UserError if it exists."""
    require_free(root, name)
    path = root / _profile_path(name)
    with atomic_write(path) as stream:
        stream.write(f"# {heading}\n\n{_dump(values)}".encode())
    return path


def require_free(root: Path, name: str) -> None:
    """Raise UserError if a profile of this name exists, since it may have edits."""
    if (root / _profile_path(name)).exists():
        raise UserError(f"{_profile_path(name)} is there: remove it, or give another `--name`")


def _profile_path(name: str) -> Path:
    if name == DEFAULT or not re.fullmatch(r"[\w][\w.-]*", name):
        raise UserError(
            f"`{name}` cannot name a profile: use letters, digits, `-` and `_`, as in `fr-en`, not {DEFAULT}"
        )
    return Path("profiles", f"{name}.yaml")


def profile_params(root: Path, name: str) -> str:
    """Return a profile's params.yaml, merged into the working tree's default. Raises UserError."""
    return _laid_over(root, name, default_params(root))


def profile_values(root: Path, name: str) -> dict[str, Any]:
    """Return a profile's parsed params.yaml."""
    values: dict[str, Any] = parse(profile_params(root, name))
    return values


def default_params(root: Path) -> str:
    """Return the default: the current params.yaml with its edits, or the committed one while a profile is in place."""
    text = _read(root / PARAMS) if (root / PARAMS).is_file() else ""
    if text.startswith(DEFAULT_HEAD) and not is_placed(root, text.encode()):
        return text
    return committed_default(root)


def with_local_corpora(params: str, data: Path) -> str:
    """Return `params` with source `files` for each corpus found in `data`, and the vocab.txt there, not the Hub's."""
    content = _load(params, PARAMS)
    names = {task: (*open_task(task).corpus_folders, task) for task in task_names() if task in content}
    folders = {
        task: next((data / name for name in known if (data / name).is_dir()), None) for task, known in names.items()
    }
    if not any(folders.values()):
        listed = ", ".join(name for known in names.values() for name in known)
        raise UserError(f"{data} has none of the folders {listed}: give the folder that contains one of them")
    for task, folder in folders.items():
        if folder is None:
            continue
        _require_sections(content, task)
        content[task]["download"].update(source="files", path=str(folder.resolve()))
        if content[task]["vocab"].get("source") == "hub" and (data / _VOCABULARY / "vocab.txt").is_file():
            content[task]["vocab"].update(source="path", path=str((data / _VOCABULARY).resolve()))
    for task in filter(folders.get, task_names()):
        if starts_from_samples(content, task):
            for section, leaves in FROM_NOTHING.items():
                content[task][section].update(leaves)
    return _dump(content)


def starts_from_samples(content: Mapping[str, Any], task: str) -> bool:
    """True if a task's model is initialised from one trained on generated texts, whose words are not those of files."""
    model = content[task]["model"]
    _, pretraining, *_ = *Path(str(model.get("pretrained"))).parts, "", ""  # models/TASK/trained
    source = content.get(pretraining)
    download = source.get("download") if isinstance(source, Mapping) else None
    return model.get("init") == "pretrained" and isinstance(download, Mapping) and download.get("source") == "sample"


def _require_sections(content: Mapping[str, Any], task: str) -> None:
    """Raise UserError if an entry that `with_local_corpora` reads is not a section."""
    section = content[task]
    for name in ("download", *FROM_NOTHING):
        if not isinstance(section, Mapping) or not isinstance(section.get(name), Mapping):
            raise UserError(f"{PARAMS}: the section `{task}.{name}` is missing or not a mapping")


def _laid_over(root: Path, name: str, default: str) -> str:
    """Return the default, overridden by the profile's values and header comment."""
    if name == DEFAULT:
        return default
    source = root / _profile_path(name)
    if not source.is_file():
        raise UserError(f"there is no profile `{name}`: choose one of {_known(root)}")
    (_, default_body), (head, body) = _parts(default), _parts(_read(source))
    where = source.relative_to(root)
    content = _load(default_body, PARAMS)
    _lay_over(content, _load(body, where), "", where)
    return f"# Profile {name}: the default with what {where} changes.\n{head}{_dump(content)}"


def _known(root: Path) -> str:
    return ", ".join([DEFAULT, *sorted(path.stem for path in (root / "profiles").glob("*.yaml"))])


def _lay_over(section: Values, changes: Values, prefix: str, where: Path) -> None:
    for name, value in changes.items():
        path = f"{prefix}{name}"
        if name not in section:
            raise UserError(f"{where}: `{path}` is not a parameter: `transformer parameters` lists all")
        is_section = isinstance(section[name], MutableMapping) and bool(section[name])
        if is_section and not isinstance(value, MutableMapping):
            raise UserError(f"{where}: `{path}` must be a section")
        if isinstance(value, MutableMapping) and not isinstance(section[name], MutableMapping | str):
            raise UserError(f"{where}: `{path}` must be one value")  # only a word may have a mapping as its alternative
        if is_section and not _another_kind(section[name], value):
            _lay_over(section[name], value, f"{path}.", where)
        else:
            _set(section, changes, name)


def _another_kind(section: Values, changes: Values) -> bool:
    """True if `changes` replaces the section: it sets another `kind` with other parameters, e.g. a recurrent model.

    A kind with the same parameters, such as a vocabulary's, changes only that leaf.
    """
    return changes.get(_KIND, section.get(_KIND)) != section.get(_KIND) and not changes.keys() <= section.keys()


def _set(section: Any, changes: Any, name: str) -> None:
    """Copy a value, with its comment if it has one; the blank line after a section stays where it is."""
    section[name] = changes[name]
    own, new = (part.ca.items.get(name, [None] * 4)[2] for part in (section, changes))
    if own is None:
        if new is not None and new.value.startswith("#"):
            section.yaml_add_eol_comment(new.value.strip(), name, column=0)
        return
    if new is not None and new.value.startswith("#"):
        own.value = new.value.splitlines()[0] + own.value[own.value.index("\n") :]
    own.column = 0  # one space after the value, however long it is


def _parts(text: str) -> tuple[str, str]:
    """Split a file into its header comment, with the blank line after it, and the rest."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "".join(lines[:first]), "".join(lines[first:])


class _Representer(RoundTripRepresenter):
    """Writes `null`, as in our files."""


_Representer.add_representer(type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null"))


def _yaml() -> YAML:
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _load(text: str, where: Path) -> Any:
    """Parse a YAML mapping, keeping comments. Raises UserError if it is not one."""
    try:
        content = _yaml().load(text)
    except (YAMLError, ValueError) as error:
        raise UserError(f"{where} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, MutableMapping):
        raise UserError(f"{where} must be a mapping of sections, not {type(content).__name__}")
    return content


def _dump(content: Any) -> str:
    stream = io.StringIO()
    _yaml().dump(content, stream)
    return stream.getvalue()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}): restore it with `git checkout {path}`") from error
