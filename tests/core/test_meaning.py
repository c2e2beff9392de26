"""What a file of Python means does not depend on how it is written down."""

import ast
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit import ROOT
from transformer.core.code import Tree
from transformer.core.errors import UserError
from transformer.core.meaning import Meanings, Module, parsed

CODE_OF = '''\
"""A docstring."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Layer:
    """A class."""

    size: int = 3
    """A field."""

    def forward(self, x: Path) -> str:
        """A method."""
        if x is None:
            raise ValueError("nothing")
        return f"{x!r:>{self.size}} and" " more"
'''
SAME = {
    "a comment": ("size: int = 3", "size: int = 3  # more"),
    "a docstring": ('"""A class."""', '"""Another text,\n\n    of lines.\n    """'),
    "a field's docstring": ('    """A field."""\n', ""),
    "blank lines": ("\n\n\n", "\n"),
    "brackets": ('f"{x!r:>{self.size}} and" " more"', '(f"{x!r:>{self.size}} "\n            f"and more")'),
    "an import for type checkers": ("from pathlib import Path", "from pathlib import PurePath"),
    "quotation marks": ('ValueError("nothing")', "ValueError('nothing')"),
}
OTHER = {
    "a float": ("= 3", "= 3.0"),
    "a name": ("forward", "backward"),
    "a message": ("nothing", "none"),
    "an annotation": ("size: int", "size: float"),
    "a default": ("x: Path)", "x: Path = None)"),
}


def of(text: str) -> Module:
    return parsed(ast.parse(text))


@pytest.mark.parametrize("name", [*SAME, *OTHER])
def test_the_meaning_is_what_runs(name: str) -> None:
    """That of an update of the weights is so without its messages."""
    was, now = (SAME | OTHER)[name]
    assert was in CODE_OF
    before, after = of(CODE_OF), of(CODE_OF.replace(was, now))
    assert (after.meaning == before.meaning) == (name in SAME)
    assert (after.update == before.update) == (name in SAME or name == "a message")
    assert of("x = ['a', 'b']").meaning != of("x = ['ab']").meaning != of("x = 'ab'").meaning


def test_imports_count_wherever_they_run_and_a_familys_methods_one_by_one() -> None:
    text = "import a.b\nif TYPE_CHECKING:\n    import c\nelse:\n    import d\ndef f():\n    from e import g\n"
    assert of(text).imports == ["a.b", "d", "e", "e.g"]
    text = "class A(Family):\n    def one(self):\n        from b import c\n    def two(self):\n        {}\n"
    before, after = of(text.format("return 2")).methods, of(text.format("import d")).methods
    assert (before["one"], before["two"][1], after["two"][1]) == (after["one"], [], ["d"])
    assert before["one"][1] == ["b", "b.c"]
    assert before["two"][0] != after["two"][0]


def test_a_file_that_is_not_python_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^a\.py is not valid Python: [^\n]*$"):
        Meanings(tmp_path / "none").of(b"def f(:", "a.py")


def test_a_broken_cache_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    for content in ("", "[]", "{", '{"a": 3}'):
        path.write_text(content)
        meanings = Meanings(path)
        found = meanings.of(b"x = 1", "a.py")
        meanings.remember()
        assert Meanings(path).of(b"x = 1", "a.py") == found
        assert len(json.loads(path.read_bytes())) == 1


PRINT = "import ast, sys; from transformer.core.meaning import parsed; print(parsed(ast.parse(sys.stdin.read())))"


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_every_version_of_python_finds_the_same(minor: int) -> None:
    """Of those that are here: nothing but the standard library is needed."""
    known = [*map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")), shutil.which(f"python3.{minor}")]
    if not known[0]:
        pytest.skip(f"Python 3.{minor} is not installed")
    tree = Tree()
    texts = {name: tree.read(name).decode() for name in tree.names[::5] if name.endswith(".py")}
    text = CODE_OF + "".join(texts.values()).replace("from __future__ import annotations", "")
    run = subprocess.run((known[0], "-c", PRINT), cwd=ROOT, input=text, capture_output=True, text=True)
    assert run.stdout.strip() == str(of(text)), run.stderr
