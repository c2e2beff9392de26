"""The documents: links resolve, what they name exists, and what is generated is current."""

import re
from pathlib import Path

import pytest

from tests.kit import ROOT, fresh_profile
from transformer import cli
from transformer.commands.parameters import as_markdown, parameters
from transformer.core.params import leaves

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("data/local/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`|^(?: {4,}|\$ )(\S.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As hosting platforms make them of headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page}: {link}"


def test_the_tests_that_hold_a_promise_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"))
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")] == []
    assert named


def test_every_command_that_pages_name_exists() -> None:
    """Targets of make, subcommands of `transformer`, and profiles."""
    rules = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    (subcommands,) = (each.choices for each in cli._parser()._actions if isinstance(each.choices, dict))
    profiles = {path.stem for path in (ROOT / "profiles").iterdir()} | {"NAME"}
    known = {"make": rules, "transformer": set(subcommands), "transformer profile": profiles}
    found = {command: set[str]() for command in known}
    for page in PAGES:
        code = "\n".join(a or b for a, b in CODE.findall(page.read_text(encoding="utf-8")))
        for command in known:
            found[command] |= set(re.findall(rf"(?:^|[;&|(]) *{command} ([a-zA-Z][\w-]*)", code, re.MULTILINE))
    assert [(command, name) for command in known for name in found[command] - known[command]] == []
    assert all(len(names) > 3 for names in found.values())


def test_the_page_of_parameters_is_current_and_has_every_leaf() -> None:
    page = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    found = list(parameters(fresh_profile("default")))
    assert page == as_markdown(found), "run `make parameters`"
    assert [each.path for each in found if not each.meaning] == []
    paths = [each.path for each in found]
    unknown = [leaf for leaf in leaves(fresh_profile("default")) if not leaf.startswith(tuple(paths))]
    assert unknown == []
