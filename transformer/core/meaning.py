"""Hash of a Python file's meaning, ignoring comments, docstrings and layout. Only the standard library is imported."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.errors import UserError
from transformer.core.files import atomic_write

_OWN = Path(__file__).read_bytes()  # another version of this file finds other meanings
_MOST = 4000  # files in a cache: a few dozen versions of the package


class Module(NamedTuple):
    """The meaning of a Python file."""

    meaning: str
    """Hash of its syntax tree, equal for all versions of Python from 3.11 on."""
    update: str
    """Like `meaning` without the arguments of `raise`: without an error, the computation is the same."""
    imports: list[str]
    """Names that it may import, also within functions."""
    attributes: list[str]
    """Names of all attributes that it reads or writes."""
    methods: dict[str, list[Any]]
    """The methods of a `Family`, each with the hash of its meaning and the names that it imports."""


class Meanings:
    """Parse files, with a cache: parsing the whole package takes a second."""

    def __init__(self, cache: Path) -> None:
        """cache: a file written by earlier processes; recreated if unreadable."""
        self._cache = cache
        self._known: dict[str, Module] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            self._known = {key: Module(*values) for key, values in json.loads(cache.read_bytes()).items()}
        self._before = len(self._known)

    def of(self, content: bytes, name: str) -> Module:
        """Parse `content` of the file `name`. Raises UserError when it is not valid Python."""
        key = hashlib.sha256(_OWN + content).hexdigest()
        if key not in self._known:
            try:
                tree = ast.parse(content)
            except (SyntaxError, ValueError) as error:
                raise UserError(f"{name} is not valid Python: {error}") from error
            self._known[key] = parsed(tree)
        return self._known[key]

    def remember(self) -> None:
        """Write new entries to the cache, if possible."""
        if len(self._known) > self._before and self._cache.parent.is_dir():
            with suppress(UserError), atomic_write(self._cache) as stream:
                stream.write(json.dumps(dict([*self._known.items()][-_MOST:])).encode())


def parsed(tree: ast.Module) -> Module:
    """Compute the meaning of a syntax tree."""
    nodes = [*_running(tree)]
    return Module(
        meaning=digest(_normal(tree, raised=True)),
        update=digest(_normal(tree, raised=False)),
        imports=sorted({name for node in nodes for name in _imports(node)}),
        attributes=sorted({node.attr for node in nodes if isinstance(node, ast.Attribute)}),
        methods={
            method.name: [digest(_normal(method, raised=True)), sorted({*_imported(method)})]
            for node in tree.body
            if isinstance(node, ast.ClassDef) and any(isinstance(x, ast.Name) and x.id == "Family" for x in node.bases)
            for method in node.body
            if isinstance(method, ast.FunctionDef)
        },
    )


def _imported(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        yield from _imports(each)


def digest(content: bytes | str) -> str:
    """Return a hash of 16 hexadecimal digits."""
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()[:16]


def _running(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in _counted(ast.iter_child_nodes(node)):
        yield from _running(child)


def _counted(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the nodes without docstrings and code for type checkers only."""
    for node in nodes:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from _counted(node.orelse)
        elif not (isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and _is_text(node.value))):
            yield node


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _normal(node: Any, *, raised: bool) -> str:
    """Serialize a syntax tree without positions and empty fields. `ast.dump` differs between versions of Python."""
    if isinstance(node, list):
        return f"[{','.join(_normal(each, raised=raised) for each in _counted(node))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    if isinstance(node, ast.Raise) and not raised:
        return "Raise"
    fields = {name: getattr(node, name, None) for name in node._fields if name not in ("kind", "type_comment")}
    if isinstance(node, ast.JoinedStr):
        fields["values"] = _joined(node.values)
    inner = (f"{name}={_normal(value, raised=raised)}" for name, value in fields.items() if value not in (None, []))
    return f"{type(node).__name__}({','.join(inner)})"


def _joined(nodes: Iterable[Any]) -> list[Any]:
    """Return an f-string's parts with adjacent texts merged: versions of Python divide them differently."""
    parts: list[Any] = []
    for node in nodes:
        if _is_text(node) and not node.value:  # Python 3.12.1 ends a format so
            continue
        if parts and _is_text(node) and _is_text(parts[-1]):
            parts[-1] = ast.Constant(parts[-1].value + node.value)
        else:
            parts.append(node)
    return parts


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
