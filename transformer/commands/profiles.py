"""Profiles: params.yaml is profiles/default.yaml with what profiles/NAME.yaml changes.

Its first line names the profile and has a checksum of the other lines: `transformer profile` does not overwrite edits.
"""

import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter

from transformer.commands.local_corpora import read_local_corpora
from transformer.core.errors import UserError, printable
from transformer.core.files import atomic_write
from transformer.core.params import parse, require_no_conflict

PARAMS = Path("params.yaml")
DEFAULT = "default"
"""Name of the profile that has every parameter; the others have what differs from it."""
_FIRST_LINE = re.compile(r"# profile: ([\w.-]+).*; checksum of the rest: (\w+)")
_KIND = "kind"


def use_profile(root: Path, name: str | None, data: Path | None) -> str:
    """Write profile `name` to params.yaml, with corpora from the folder `data` if given; return what was done.

    name: None for the profile that params.yaml was made of. Raises UserError when neither is given, when the profile
    does not exist or has an unknown parameter, and when params.yaml has edits.
    """
    if name is None and data is None:
        raise UserError(f"say which profile: {_known(root)}")
    path = root / PARAMS
    current = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    require_no_conflict(current.encode(), PARAMS)
    first, _, rest = current.partition("\n")
    found = _FIRST_LINE.fullmatch(first)
    name = name or (found[1] if found else DEFAULT)
    wanted = profile_params(root, name, data)
    if wanted == current:
        return f"{PARAMS}: {name} already in place"
    if current and not (found and found[2] == _checksum(rest)):
        raise UserError(
            f"{PARAMS} has edits: keep them as a profile of your own in profiles/, or delete {PARAMS} to drop them"
        )
    with atomic_write(path) as stream:
        stream.write(wanted.encode())
    return f"{PARAMS}: {name} put in place"


def profile_params(root: Path, name: str, data: Path | None = None) -> str:
    """Return the params.yaml of a profile, with corpora from the folder `data` if given. Raises UserError."""
    content = _merged(root, _load(root, name), profile_path(name))
    where = ""
    if data is not None:
        read_local_corpora(content, data)
        where = f", data: {printable(str(data))}"
    sources = " and ".join(f"profiles/{each}.yaml" for each in dict.fromkeys((DEFAULT, name)))
    rest = f"# Made of {sources} by `transformer profile`, which never overwrites edits.\n{dump(content)}"
    return f"# profile: {name}{where}; checksum of the rest: {_checksum(rest)}\n{rest}"


def merged_values(root: Path, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default with these values, as if they were the profile `name`. Raises UserError."""
    merged: dict[str, Any] = parse(dump(_merged(root, values, profile_path(name))))
    return merged


def profile_path(name: str) -> Path:
    """Return `profiles/NAME.yaml`. Raises UserError if the name could be a path."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UserError(f"`{name}` cannot name a profile: use letters, digits, `-` and `_`, as in `fr-en`")
    return Path("profiles", f"{name}.yaml")


def _known(root: Path) -> str:
    return ", ".join(sorted(path.stem for path in (root / "profiles").glob("*.yaml")))


def _merged(root: Path, overlay: Mapping[str, Any], where: Path) -> Any:
    """Return the default with the values of an overlay and the comment at its top. where: its file, for messages."""
    content = _load(root, DEFAULT)
    _lay_over(content, overlay, "", where)
    if isinstance(overlay, CommentedMap):
        content.ca.comment = overlay.ca.comment
    return content


def _lay_over(section: Any, changes: Mapping[str, Any], prefix: str, where: Path) -> None:
    for name, value in changes.items():
        path = f"{prefix}{name}"
        if name not in section:
            raise UserError(f"{where}: `{path}` is not a parameter: `transformer parameters` lists all")
        is_section = isinstance(section[name], Mapping) and bool(section[name])
        if is_section and not isinstance(value, Mapping):
            raise UserError(f"{where}: `{path}` must be a section")
        if is_section and not _is_another_kind(section[name], value):
            _lay_over(section[name], value, f"{path}.", where)
        else:
            section[name] = value
            if (comments := section.ca.items.get(name)) and comments[2]:
                comments[2].column = 0  # one space after the value, however long it is


def _is_another_kind(section: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    """True if `changes` replaces the section: it sets another `kind` with other parameters, e.g. a recurrent model.

    A kind with the same parameters, such as a vocabulary's, changes only that leaf.
    """
    return changes.get(_KIND, section.get(_KIND)) != section.get(_KIND) and not changes.keys() <= section.keys()


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


def _load(root: Path, name: str) -> Any:
    """Parse a profile's file, keeping comments. Raises UserError if it is missing or not a YAML mapping."""
    path = profile_path(name)
    if not (root / path).is_file():
        raise UserError(f"there is no profile `{name}`: choose one of {_known(root)}")
    try:
        content = _yaml().load((root / path).read_text(encoding="utf-8-sig"))
    except (YAMLError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, CommentedMap):
        raise UserError(f"{path} must be a mapping of sections, not {type(content).__name__}")
    return content


def dump(content: Any) -> str:
    """Return YAML as in our profiles."""
    stream = io.StringIO()
    _yaml().dump(content, stream)
    return stream.getvalue()


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
