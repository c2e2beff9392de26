"""Meaning and valid values of each parameter, from the sections that declare them: `transformer parameters`."""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from transformer.core.task import STAGES, open_task, task_names
from transformer.core.validation import SHARED_SECTIONS, Section

_LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <="}
_SHORT = 100  # characters of a default that are shown


class Parameter(NamedTuple):
    """A leaf of params.yaml."""

    path: str
    """Dotted path, as in `dvc exp run -S`."""
    values: str
    """Description of its valid values."""
    default: str
    """Its value in the given parameters; empty if they contain another kind of the section."""
    meaning: str
    declared: str
    """File of the section's class."""


def parameters(content: Mapping[str, Any]) -> Iterator[Parameter]:
    """Yield every parameter in stage order, starting with those shared by all tasks. content: of a params.yaml."""
    found: dict[str, list[Parameter]] = {}
    for task in task_names():
        for stage in STAGES:
            for name, field in open_task(task).family.stage(stage).Params.model_fields.items():
                shared = name in SHARED_SECTIONS
                path = name if shared else f"{task}.{name}"
                section = _section(content if shared else _section(content, task), name)
                leaves = list(_leaves(field.annotation, path, section))
                found[path] = max(found.get(path, []), leaves, key=len)  # a stage may declare a part of a section
    for leaves in found.values():
        yield from leaves


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section; empty if missing, as for a new task."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _leaves(annotation: Any, path: str, section: Mapping[str, Any]) -> Iterator[Parameter]:
    schemas = [each for each in _schemas(annotation) if issubclass(each, Section)]
    for schema in schemas:
        chosen = "kind" not in schema.model_fields or section.get("kind") in get_args(_kind(schema))
        suffix = f" (kind: {get_args(_kind(schema))[0]})" if len(schemas) > 1 else ""
        for name, field in schema.model_fields.items():
            if any(issubclass(each, Section) for each in _schemas(field.annotation)):
                yield from _leaves(field.annotation, f"{path}.{name}", _section(section, name))
                continue
            default = _shown(section[name]) if chosen and name in section else ""
            meaning = _meanings(schema).get(name, "") + suffix
            yield Parameter(f"{path}.{name}", _values(field), default, meaning, _file(schema))


@cache
def _meanings(schema: type[Section]) -> dict[str, str]:
    """Return the docstrings below a section's fields. Not read by pydantic, to spare every command that time."""
    found: dict[str, str] = {}
    for each in reversed(schema.__mro__):
        if issubclass(each, Section):
            (declared,) = ast.parse(dedent(inspect.getsource(each))).body
            assert isinstance(declared, ast.ClassDef)
            for field, below in pairwise(declared.body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                        found[name] = " ".join(text.split())
    return found


def _file(schema: type[Section]) -> str:
    return schema.__module__.replace(".", "/") + ".py"


def _kind(schema: type[Section]) -> Any:
    return schema.model_fields["kind"].annotation


def _schemas(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _schemas(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [schema for each in get_args(annotation) for schema in _schemas(each)]
    return [annotation] if inspect.isclass(annotation) else []


def _values(field: FieldInfo) -> str:
    limits = [
        f"{sign} {getattr(each, limit)}"
        for each in field.metadata
        for limit, sign in _LIMITS.items()
        if getattr(each, limit, None) is not None
    ]
    return ", ".join((_type(field.annotation), *limits))


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, get_args(annotation)))
    if get_origin(annotation) in (Union, UnionType):
        named = [_type(each) for each in get_args(annotation) if each is not NoneType]
        return " or ".join([*named, "null"] if NoneType in get_args(annotation) else named)
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    return annotation.__name__ if inspect.isclass(annotation) and not get_args(annotation) else str(annotation)


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def as_text(given: Iterable[Parameter]) -> str:
    """Format for a terminal: path, default and valid values on a line, the meaning below."""
    return "".join(f"{each.path}: {each.default or '-'}  [{each.values}]\n    {each.meaning}\n" for each in given)


def as_markdown(given: Iterable[Parameter]) -> str:
    """Format as Markdown, with a table per section."""
    lines: list[str] = []
    by_section = groupby(given, lambda each: each.path.rpartition(".")[0])
    for section, leaves in ((section, list(each)) for section, each in by_section):
        files = ", ".join(f"`{file}`" for file in dict.fromkeys(each.declared for each in leaves))
        lines += ["", f"## {section}", "", f"Declared in {files}.", ""]
        lines += ["| leaf | default | values | meaning |", "|---|---|---|---|", *map(_row, leaves)]
    return "\n".join(lines).strip() + "\n"


def _row(each: Parameter) -> str:
    leaf = each.path.rpartition(".")[2]
    cells = (f"`{leaf}`", f"`{each.default}`" if each.default else "", each.values, each.meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
