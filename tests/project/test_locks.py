"""The locks, what pyproject.toml names, and the list of licences belong together."""

import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT
from tests.kit import read_versions

OF_GPUS = ("nvidia-", "cuda-", "triton")
"""What some builds of torch bring; `make lock` leaves it out, so that the locks are for every machine."""


def names(path: Path) -> set[str]:
    return {canonicalize_name(name) for name in read_versions(path) if name != "python"}


def project() -> dict[str, list[str]]:
    """The requirements of the package alone (under an empty name) and of each extra."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": content["dependencies"], **content["optional-dependencies"]}


def closure(named: Iterable[str]) -> set[str]:
    """All that these requirements install here, by the metadata of what is installed."""
    seen, left = set(), [Requirement(each) for each in named]
    while left:
        requirement = left.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        try:
            more = requires(requirement.name) or []
        except PackageNotFoundError:  # of another platform
            continue
        seen.add(key)
        for text in more:
            each = Requirement(text)
            extras = requirement.extras or {""}
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                left.append(each)
    return {name for name, _ in seen if not name.startswith(OF_GPUS)}


def test_the_first_lock_is_just_what_running_the_workflow_needs() -> None:
    needed = closure([*project()[""], *project()["workflow"]])
    assert names(ROOT / "requirements.lock") == needed - {"setuptools"}  # pip freeze leaves it out


def test_the_second_lock_adds_what_the_others_need_and_repeats_nothing() -> None:
    base, more = names(ROOT / "requirements.lock"), names(ROOT / "requirements-dev.lock")
    extras = [*project()["dev"], *project()["docs"], *project()["cluster"]]
    needed = closure(each for each in extras if not each.startswith("transformer["))
    assert not base & more
    assert needed - base - {"setuptools", "pip"} == more


def test_the_list_of_licences_is_of_the_lock() -> None:
    text = (ROOT / "THIRD_PARTY_LICENSES.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in text.splitlines() if "|" in line]
    listed = {canonicalize_name(name): version for name, version, _ in rows[2:]}
    locked = read_versions(ROOT / "requirements.lock")
    assert listed == {canonicalize_name(name): version for name, version in locked.items() if name != "python"}
    assert all(licence for *_, licence in rows)
