"""Fast reading of the YAML that DVC writes: dvc.lock and the entries of its run cache."""

import re
from typing import Any, ClassVar

import yaml

LOCK = "dvc.lock"


class _Yaml12Loader(yaml.CSafeLoader):  # type: ignore[misc, unused-ignore]
    """libyaml's scanner with YAML 1.2's scalars, which DVC writes: `1e-05` is a number, `on` a string.

    ruamel.yaml's YAML 1.2 reader gives the same values in a hundred times the time, and a repository's history
    may hold hundreds of lock files.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
)
for _name, _pattern, _first in _SCALARS:
    # The first scalar that matches wins, so an integer is not taken for a float.
    _firsts = ["" if letter == "\0" else letter for letter in _first]
    _Yaml12Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(rf"^(?:{_pattern})$"), _firsts)


def parse_lock(text: str | bytes) -> dict[str, Any]:
    """The mapping that a lock file or run cache entry holds. Raises ValueError when it is none."""
    try:
        content = yaml.load(text, Loader=_Yaml12Loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if not isinstance(content, dict):
        raise ValueError(f"a mapping was expected, not {type(content).__name__}")
    return content


RESOLVE = "resolve the merge (`git checkout --ours dvc.lock`, or --theirs), then run `dvc repro`"


def has_conflict(text: bytes) -> bool:
    """Whether git left a conflict's markers in a lock file."""
    return re.search(rb"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE) is not None
