"""Any value at any leaf of params.yaml is valid, or gives a one-line error that names the leaf or its section."""

import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT, fresh_profile
from transformer.commands import check
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
PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))
SAMPLE = 600


def sections(content: dict[Any, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[Any, Any]]]:
    """The paths of all mappings, and the mappings."""
    yield path, content
    for name, value in content.items():
        if isinstance(value, dict):
            yield from sections(value, (*path, name))


def test_any_value_at_a_leaf_is_valid_or_one_line_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    faults, chosen = [], random.Random(0)
    for _ in range(SAMPLE):
        content = fresh_profile(profile := chosen.choice(PROFILES))
        monkeypatch.setattr(check, "read_params", lambda path, content=content: content)
        leaves = [(path, section, name) for path, section in sections(content) for name in section]
        (before, section, name), value = chosen.choice(leaves), chosen.choice(VALUES)
        section[name], path = value, (*before, name)
        try:
            check.check_params(Path(profile))
        except UserError as error:
            message = str(error)
            named = any(f"`{'.'.join(path[:end])}" in message for end in range(1, len(path) + 1))
            if named and len(message.splitlines()) == 1 and len(message) <= 500:
                continue
            faults.append(f"{profile} {path} = {value!r:.60}: {message:.200}")
        except Exception as error:
            faults.append(f"{profile} {path} = {value!r:.60}: {type(error).__name__} {error!s:.200}")
    assert faults == []


def test_an_unknown_neighbour_of_any_leaf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for profile in PROFILES:
        content = fresh_profile(profile)
        monkeypatch.setattr(check, "read_params", lambda path, content=content: content)
        for path, section in [*sections(content)]:
            if path[-1:] not in (("sample_rows",), ("labels",)):  # their keys are splits of the sample, or labels
                section["unheard_of"] = 1
                with pytest.raises(UserError, match="unheard_of"):
                    check.check_params(Path(profile))
                del section["unheard_of"]
