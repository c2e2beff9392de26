"""Detects changes to a stage's parameters, code and inputs while it runs.

DVC hashes them only when a stage has ended, so edits made meanwhile would be recorded in dvc.lock, and in DVC's run
cache, as what produced the result.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer.core.code import CODE, code_at_start_of, code_now, files_of, within
from transformer.core.declared import WORKFLOW, dependencies
from transformer.core.digest import leaves
from transformer.core.errors import UserError
from transformer.core.params import declared_sections, read_params
from transformer.core.repository import refuse_other_repository
from transformer.core.schema import StageParams

_FAMILIES = "transformer/families"
_SHOWN = 3


class Started:
    """The parameters, code and inputs that a stage was started with."""

    def __init__(
        self, path: Path, content: Mapping[str, Any], stage: str, task: str, family: str, schema: type[StageParams]
    ) -> None:
        """path: the params.yaml with this `content`; schema: of the stage's parameters. Raises UserError."""
        self._path, self._task, self._schema = path, task, schema
        self.sections = declared_sections(content, task, schema, where=path)
        """The raw values of the sections that the stage declares, by dotted name."""
        declared = dependencies(stage, task, content)
        _require_family(declared, task, family)
        _require_seen(declared)
        self.code = [name for name in declared if name.split("/")[0] in CODE]
        """The files and folders of code that dvc.yaml declares."""
        self._inputs = [Path(name) for name in declared if name.split("/")[0] not in CODE]
        self._stamps = _stamps(self._inputs)

    def require_unchanged(self, note: str) -> None:
        """Raise UserError, one line that names what changed, if anything did; note: appended."""
        changed = [*self._changed_params(), *self._changed_code(), *self._changed_inputs()]
        if changed:
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            raise UserError(
                f"{', '.join(changed[:_SHOWN])}{more} changed while the stage ran, so nothing is recorded as its"
                f" result: revert the change or keep it, and run `dvc repro` again{note}"
            )

    def _now(self) -> dict[str, Any]:
        return declared_sections(read_params(self._path), self._task, self._schema, where=self._path)

    def _changed_params(self) -> Iterator[str]:
        now, was = (
            {name: json.dumps(value, ensure_ascii=False) for name, value in leaves(sections).items()}
            for sections in (self._now(), self.sections)
        )
        for name in _differing(was, now):
            yield f"{name} ({was.get(name, 'missing')} -> {now.get(name, 'missing')})"

    def _changed_code(self) -> Iterator[str]:
        for name in self.code:
            yield from _differing(code_at_start_of([name]), code_now(name))

    def _changed_inputs(self) -> Iterator[str]:
        yield from _differing(self._stamps, _stamps(self._inputs))


def _require_family(declared: Sequence[str], task: str, family: str) -> None:
    """Otherwise DVC would watch another family's code, and consider results of changed code up to date."""
    if declared and not any(within(name, f"{_FAMILIES}/{family}") for name in declared):
        raise UserError(
            f"{WORKFLOW} names another family for {task} than transformer/tasks/{task}/task.py, which says"
            f" `{family}`: fix one of them"
        )


def _require_seen(declared: Sequence[str]) -> None:
    """Raises UserError for a dependency that DVC takes for empty."""
    for name in declared:
        refuse_other_repository(Path(name))


def _differing(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]


def _stamps(paths: list[Path]) -> dict[str, tuple[int, int, int]]:
    """Modification time, size and inode of every input file: hashing all of them again would take too long."""
    stats = {str(file): file.stat() for path in paths for file in files_of(path)}
    return {name: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats.items()}
