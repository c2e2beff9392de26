"""Fast parser for the YAML that DVC writes: dvc.lock and run cache entries."""

import re
from typing import Any, ClassVar

import yaml

from transformer.core.errors import UserError

LOCK = "dvc.lock"


class _Yaml12Loader(yaml.CSafeLoader):  # type: ignore[misc, unused-ignore]
    """libyaml's scanner with the scalars of YAML 1.2, which DVC writes: `1e-05` is a number, `on` is a string.

    ruamel.yaml's YAML 1.2 reader gives the same values but takes a hundred times as long, and a repository's history
    may have hundreds of lock files.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
)
for _name, _pattern, _first in _SCALARS:
    # The first match wins, so integers are not read as floats.
    _firsts = ["" if letter == "\0" else letter for letter in _first]
    _Yaml12Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(rf"^(?:{_pattern})$"), _firsts)


def parse_lock(text: str | bytes) -> dict[str, Any]:
    """Parse a lock file or run cache entry. Raises ValueError if it is not a mapping."""
    try:
        content = yaml.load(text, Loader=_Yaml12Loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if not isinstance(content, dict):
        raise ValueError(f"expected a mapping, not {type(content).__name__}")
    stages = content.get("stages") or {}
    if not isinstance(stages, dict) or not all(
        isinstance(name, str) and isinstance(entry, dict) for name, entry in stages.items()
    ):
        raise ValueError("`stages` is not a mapping of stages")
    return content


RESOLVE = (
    "resolve the merge (`git checkout --ours dvc.lock params.yaml reports`, or --theirs), then run `dvc checkout` and"
    " `dvc repro`"
)


def require_valid(text: str | bytes, name: str) -> None:
    """Raise UserError when the lock file of the result `name` cannot be parsed."""
    try:
        parse_lock(text)
    except ValueError as error:
        raise UserError(
            f"{LOCK} of {name} is broken ({error}): `git checkout {LOCK}` restores the committed one"
        ) from error
