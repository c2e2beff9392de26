"""Any value at any leaf of params.yaml is valid, or gives a one-line error that names the leaf or its section."""

import copy
import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT, fresh_profile
from transformer.commands import check
from transformer.commands.profiles import DEFAULT
from transformer.core.errors import UserError

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 0.5, -0.5, 1.0, 1e-300, 1e308, 2**31, 2**63, -(2**63)),
    *(float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "1", "null", "\u202eabc", "a\nb", "x" * 100_000, "../../etc/passwd"),
    *([], [1], [None], ["x", "x"], [[]], [float("nan")] * 2, [0.9] * 3),
    *({}, {"x": 1}, {"kind": "transformer"}, {1: 2}, {"": {}}),
    datetime.date(2020, 1, 1),
    b"bytes",
]
PROFILES = [DEFAULT, *sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))]
SAMPLE = 600  # cases of `make test`


def leaves(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all sections and leaves."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield (*path, name)
            yield from leaves(value, (*path, name))


def cases() -> list[tuple[str, tuple[Any, ...], Any]]:
    return [
        (profile, path, value) for profile in PROFILES for path in leaves(fresh_profile(profile)) for value in VALUES
    ]


def faults(chosen: list[tuple[str, tuple[Any, ...], Any]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever fails in another way than with one line that says where."""
    contents = {profile: fresh_profile(profile) for profile in PROFILES}
    found = []
    for profile, path, value in chosen:
        content = copy.deepcopy(contents[profile])
        section = content
        for name in path[:-1]:
            section = section[name]
        section[path[-1]] = copy.deepcopy(value)
        monkeypatch.setattr(check, "read_params", lambda path, content=content: content)
        case = f"{profile} {'.'.join(path)} = {value!r:.60}"
        try:
            check.check_params(Path(profile))
        except UserError as error:
            message = str(error)
            named = any(f"`{'.'.join(path[:end])}" in message for end in range(1, len(path) + 1))
            if not named or len(message.splitlines()) != 1 or len(message) > 500:
                found.append(f"{case}: {message:.200}")
        except Exception as error:
            found.append(f"{case}: {type(error).__name__} {error!s:.200}")
    return found


def test_any_value_at_a_leaf_is_valid_or_one_line_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(random.Random(0).sample(cases(), SAMPLE), monkeypatch) == []


@pytest.mark.stress
def test_every_value_at_every_leaf_is_valid_or_one_line_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(cases(), monkeypatch) == []


def test_an_unknown_neighbour_of_any_leaf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for profile in PROFILES:
        content = fresh_profile(profile)
        monkeypatch.setattr(check, "read_params", lambda path, content=content: content)
        sections = [path for path in leaves(content) if isinstance(_at(content, path), dict)]
        for path in [(), *sections]:
            section = _at(content, path)
            if path and path[-1] in ("sample_rows", "labels"):
                continue  # its keys are split names, which depend on the sample; or labels
            section["unheard_of"] = 1
            with pytest.raises(UserError, match="unheard_of"):
                check.check_params(Path(profile))
            del section["unheard_of"]


def _at(content: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        content = content[name]
    return content
