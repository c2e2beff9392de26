"""Meaning and valid values of each parameter, from the sections that declare them: `transformer parameters`."""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent, fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from transformer.core.task import STAGES, open_task, task_names
from transformer.core.validation import SHARED_SECTIONS, Section

_LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <="}
_SHORT = 100  # characters of a default that are shown
_WIDTH = 100  # of the page's prose


class Parameter(NamedTuple):
    """A leaf of params.yaml."""

    task: str
    """Empty if all tasks share it."""
    section: str
    leaf: str
    """Its name in the section; dotted if nested."""
    kind: str
    """The `kind` of its section that has it; empty if the section has none."""
    values: str
    """Description of its valid values."""
    default: str
    """Its value in the given parameters; empty if they contain another kind of the section."""
    meaning: str
    declared: str
    """File of the section's class."""

    @property
    def path(self) -> str:
        """Dotted path, as in `dvc exp run -S`."""
        return ".".join(filter(None, (self.task, self.section, self.leaf)))


def parameters(content: Mapping[str, Any]) -> Iterator[Parameter]:
    """Yield every parameter in stage order, starting with those shared by all tasks. content: of a params.yaml."""
    found: dict[str, list[Parameter]] = {}
    for task in task_names():
        for stage in STAGES:
            for name, field in open_task(task).family.stage(stage).Params.model_fields.items():
                owner = "" if name in SHARED_SECTIONS else task
                section = _section(_section(content, owner) if owner else content, name)
                leaves = [Parameter(owner, name, *each) for each in _leaves(field.annotation, "", section)]
                # A stage may declare a part of a section.
                found[f"{owner}.{name}"] = max(found.get(f"{owner}.{name}", []), leaves, key=len)
    for leaves in found.values():
        yield from leaves


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section; empty if missing, as for a new task."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _leaves(annotation: Any, prefix: str, section: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield leaf, kind, values, default, meaning and file of every field, in all kinds of a section."""
    schemas = [each for each in _schemas(annotation) if issubclass(each, Section)]
    for schema in schemas:
        kind = _kind(schema)
        chosen = kind in ("", section.get("kind"))
        for name, field in schema.model_fields.items():
            if any(issubclass(each, Section) for each in _schemas(field.annotation)):
                yield from _leaves(field.annotation, f"{prefix}{name}.", _section(section, name))
                continue
            default = _shown(section[name]) if chosen and name in section else ""
            yield f"{prefix}{name}", kind, _values(field), default, _meanings(schema).get(name, ""), _file(schema)


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


def _kind(schema: type[Section]) -> str:
    """Return the value of `kind` that chooses this schema; empty if none does."""
    values = get_args(schema.model_fields["kind"].annotation) if "kind" in schema.model_fields else ()
    return values[0] if len(values) == 1 else ""


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
    inner = ", ".join(_type(each).replace(", ", "/") for each in get_args(annotation))
    return f"{annotation.__name__}[{inner}]" if inner else str(annotation.__name__)


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def as_text(given: Iterable[Parameter]) -> str:
    """Format for a terminal: path, default and valid values on a line, the meaning below."""
    return "".join(
        f"{each.path}: {each.default or '-'}  [{each.values}]\n"
        f"    {each.meaning}{f' (kind: {each.kind})' if each.kind else ''}\n"
        for each in given
    )


_HEAD = """\
# Parameters

Every leaf of `params.yaml`: which tasks or kinds have it (empty: all), its default, its valid
values, and what it means. `transformer parameters PREFIX` prints a part of this page. Written by
`make parameters` from the typed sections.
"""


def as_markdown(given: Iterable[Parameter]) -> str:
    """Format as a page, with a table per section; what several tasks or kinds have in common is one row."""
    sections: dict[str, list[Parameter]] = {}
    for each in given:
        sections.setdefault(each.section, []).append(each)
    lines = [_HEAD]
    for section, leaves in sections.items():
        files = ", ".join(dict.fromkeys(f"`{each.declared}`" for each in leaves))
        declared = fill(f"Declared in {files}.", width=_WIDTH, break_on_hyphens=False)
        rows: dict[tuple[str, str, str], list[Parameter]] = {}
        for each in leaves:
            rows.setdefault((each.leaf, each.values, each.meaning), []).append(each)
        lines += [
            f"## {section}\n\n{declared}\n",
            "| leaf | of | default | values | meaning |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(same, leaves) for same in rows.values()] + [""]
    return "\n".join(lines)


def _row(same: list[Parameter], leaves: list[Parameter]) -> str:
    """Format one leaf of the section `leaves`. same: its equal declarations in tasks and kinds."""
    leaf, values, meaning = same[0].leaf, same[0].values, same[0].meaning
    cells = (f"`{leaf}`", _owners(same, leaves), _defaults(same), values, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _owners(same: list[Parameter], leaves: list[Parameter]) -> str:
    """Name the tasks, or the kinds within tasks, that have a leaf; empty if all have it."""
    having, every = ({(each.task, each.kind) for each in some} for some in (same, leaves))
    if having == every:
        return ""
    tasks, kinds = {task for task, _ in having}, {kind for _, kind in having}
    if having == {each for each in every if each[0] in tasks}:
        return ", ".join(sorted(tasks))
    names = sorted(kinds) if having == {each for each in every if each[1] in kinds} else sorted(map(" ".join, having))
    return ", ".join(names)


def _defaults(same: list[Parameter]) -> str:
    """Show the default, or that of each task where they differ."""
    found = {each.task: f"`{each.default}`" for each in same if each.default}
    if len(set(found.values())) <= 1:
        return next(iter(found.values()), "")
    return ", ".join(f"{task} {default}" for task, default in found.items())
