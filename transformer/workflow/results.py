"""Find results by name, and check their validity."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.code import CODE, Tree, changes, changes_in, code_path, ran_path, workspace_code
from transformer.core.code import LOCK as LIBRARIES
from transformer.core.errors import UserError
from transformer.core.files import read_json, table_rows, write_json
from transformer.core.params import parameters_digest
from transformer.core.task import open_task, task_names
from transformer.core.unchanged import repository
from transformer.workflow.dvc import cached, changed_since, content_md5, md5_of_folder, not_as_locked
from transformer.workflow.dvc import read_at as read_from_dvc
from transformer.workflow.git import Snapshot, blob, blobs, experiments, files, git, head, prefix, snapshots
from transformer.workflow.pipeline import LOCK, OPTIONAL, STAGES, Pipeline, pipelines

WORKSPACE = "workspace"
_SHORT = 10  # digits of a commit
_NAMED = 3
_KEY = 8  # digits of a key that find a result
Metrics = dict[str, float]
Row = dict[str, str]


@dataclass(frozen=True)
class Result:
    """A task's result at a commit or in the workspace."""

    root: Path
    name: str
    """Name used to look it up: `workspace`, a commit, an experiment, ..."""
    commit: str | None
    """None for the workspace."""
    pipeline: Pipeline

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.pipeline.task

    def read(self, path: str, *, remote: bool = False) -> bytes | None:
        """Read an output file from the workspace, git or DVC's cache; None if none has it.

        remote: whether to ask DVC's remote, too, which may take minutes to answer.
        """
        md5 = {**self.pipeline.outs, **self.pipeline.records}.get(path)
        if md5 is None:
            return None
        content = _read(self.root, self.commit, path)
        if content_md5(content) == md5:
            return content
        if (found := cached(self.root, md5)) is not None or self.commit is None or not remote:
            return found
        found = read_from_dvc(self.root, self.commit, path)
        return found if found is not None and content_md5(found) == md5 else None

    def evaluation(self) -> dict[str, dict[str, Any]]:
        """Return the parsed evaluation.json. Raises UserError when the result's own is not available."""
        path = f"reports/{self.task}/evaluation.json"
        content = self.read(path)
        if content is None and self.commit is not None:
            raise UserError(f"{path} at {self.name} is not what {LOCK} says there: choose another commit")
        if content is None:
            raise UserError(not_as_locked(self.root, path, missing=not (self.root / path).is_file()))
        parsed: dict[str, dict[str, Any]] = json.loads(content)
        return parsed

    def metrics(self) -> dict[str, Metrics]:
        """Return the metrics in evaluation.json by split."""
        numbers = {split: _numbers(values) for split, values in self.evaluation().items()}
        return {split: values for split, values in numbers.items() if values}

    def predictions(self) -> dict[str, list[Row]]:
        """Return the rows of predictions.tsv by split; empty if neither DVC's cache nor its remote has the file."""
        content = self.read(f"reports/{self.task}/predictions.tsv", remote=True) or b""
        rows: dict[str, list[Row]] = {}
        for row in table_rows(content.decode().split("\n")):
            rows.setdefault(row["split"], []).append(row)
        return rows

    def code(self) -> dict[str, dict[str, Any]]:
        """Return the available fingerprints of the result's code by path."""
        found = {path: _read(self.root, self.commit, path) for path in self.pipeline.code}
        return {p: json.loads(content) for p, content in found.items() if content_md5(content) == self.pipeline.code[p]}

    @cached_property
    def _ran(self) -> dict[str, dict[str, Any]]:
        return self.ran()

    def ran(self, *, remote: bool = False) -> dict[str, dict[str, Any]]:
        """Return the available records of what the stages ran with; remote: as for `read`."""
        found = {stage: self.read(ran_path(stage, self.task), remote=remote) for stage in self.pipeline.stages}
        return {stage: json.loads(content) for stage, content in found.items() if content}

    def never_run(self, *, remote: bool = False) -> str | None:
        """Explain which stage never ran with its parameters in dvc.lock, so that this is no result; else None."""
        found = self.ran(remote=True) if remote else self._ran
        for stage, ran in sorted(found.items(), key=lambda each: each[0] in OPTIONAL):  # these declare others' sections
            if ran["parameters"] != parameters_digest(self.pipeline.stages[stage].params):
                return (
                    f"{self.task}: {self.name} has no result: {stage} never ran with the parameters in {LOCK} (`dvc exp"
                    " save` and `dvc commit` record them without a run); run"
                    f" `dvc repro --force --single-item {stage}@{self.task}`, then `dvc repro`"
                )
        return None

    def accepted(self) -> list[str]:
        """Return the stages whose code in dvc.lock is not the code that ran."""
        code = {stage: self.pipeline.code.get(code_path(stage, self.task)) for stage in self._ran}
        return [stage for stage, ran in self._ran.items() if ran["code"] != code[stage]]

    def warning(self) -> str | None:
        """Explain why the result does not match the current parameters, code and data; None if it does."""
        try:
            changed = self._changed()
        except UserError as error:
            return f"{self.task}: what has changed since cannot be told: {error}"
        if changed:
            named = [f"{stage}: {_some(what)}" for stage, what in changed.items()]
            return (
                f"{self.task}: the result of {self.name} is older than what has changed since"
                f" ({_some(named, '; ')}); `dvc repro report@{self.task}` makes the new one"
            )
        if accepted := self.accepted():
            return (
                f"{self.task}: {', '.join(accepted)} of {self.name} ran with other code than {LOCK} has (`transformer"
                " accept`, `dvc exp save` and `dvc commit` record it without a run);"
                f" `dvc repro --force report@{self.task}` runs it"
            )
        if len(self._ran) < len(self.pipeline.records):
            return (
                f"{self.task}: what {self.name} ran with cannot be checked: its records are not here"
                " (`dvc fetch --all-commits` brings them)"
            )
        return None

    def _changed(self) -> dict[str, list[str]]:
        if self.commit is None:
            changed = _workspace_changes(self.root)
            names = (f"{stage}@{self.task}" for stage in self.pipeline.stages)
            return {name: changed[name] for name in names if name in changed}
        tree = code_at(self.root, self.commit)
        found = {Path(path).stem: changes_in(tree, code) for path, code in self.code().items()}
        return {f"{stage}@{self.task}": changed for stage, changed in found.items() if changed}


@dataclass(frozen=True)
class Found:
    """The contents of a dvc.lock for all tasks."""

    results: dict[str, Result]
    """Results by task."""
    partial: dict[str, str]
    """By task: why its stages do not form a result, and what to run."""


def results_at(root: Path, name: str, commit: str | None, task: str | None = None) -> Found:
    """Return the results of a commit, or of the workspace (None); may be empty. task: only this one.

    Raises UserError when dvc.lock has conflict markers or is not valid.
    """
    found = Found({}, {})
    for pipeline in pipelines(_read(root, commit, LOCK), name):
        if task not in (None, pipeline.task):
            continue
        result = Result(root, name, commit, pipeline)
        why = pipeline.why_partial(name) if pipeline.stale else result.never_run()
        if why:
            found.partial[pipeline.task] = why
        else:
            found.results[pipeline.task] = result
    return found


def find_results(root: Path, name: str, task: str | None = None) -> Found:
    """Resolve `name`: `workspace`, a DVC experiment, a commit, branch or tag, or an MLflow run by (part of) its key.

    A run's name ends in the start of its key. Raises UserError when there is no result, or none of `task`.
    """
    found = results_at(root, name, None if name == WORKSPACE else commit_of(root, name), task)
    if task in found.results or (task is None and found.results):
        return found
    if partial := [line for other, line in found.partial.items() if task in (None, other)]:
        raise UserError("; ".join(partial))
    what = f"no complete result of {task}" if task else "no complete result"
    raise UserError(f"{name} has {what} in {LOCK}: run `dvc repro` there and commit, or choose another")


def result_before(result: Result) -> Result | None:
    """Return the newest other result of the task in HEAD's history; None if there is none.

    Passed over are commits of dvc.lock without the metrics that belong to it, or with parameters that never ran.
    """
    for commit in git(result.root, "log", "--format=%H", "HEAD", "--", LOCK).decode().split():
        try:
            other = results_at(result.root, commit[:_SHORT], commit, result.task).results.get(result.task)
            if other is not None and other.pipeline.key != result.pipeline.key and other.evaluation():
                return other
        except UserError:
            continue
    return None


def all_results(root: Path) -> dict[str, tuple[Result, Snapshot]]:
    """Return every result of the commits and experiments, by key, each with its oldest commit, oldest first.

    Results that never ran with their parameters are left out.
    """
    found: dict[str, tuple[Result, Snapshot]] = {}
    for snapshot in snapshots(root):
        try:
            here = results_at(root, snapshot.commit[:_SHORT], snapshot.commit).results
        except UserError:  # a broken dvc.lock was committed
            continue
        for result in here.values():
            found.setdefault(result.pipeline.key, (result, snapshot))
    return found


def stale_stages(root: Path, *, outputs: bool = True) -> dict[str, list[str]]:
    """Return the stages that would run now, by name, with what has changed; not those that would only follow.

    DVC's own status does not see code before the stage `code` has run. outputs: as for `changed_since`.
    """
    found = changed_code(root)
    for name, changed in changed_since(root, outputs=outputs).items():
        found[name] = [*found.get(name, []), *changed]
    return found


def changed_code(root: Path) -> dict[str, list[str]]:
    """Return the code that has changed since the stage `code` ran, by stage."""
    found = {}
    for task in task_names():
        for stage, now in workspace_code(root, open_task(task)).items():
            path = root / code_path(stage, task)
            if path.is_file() and (changed := changes(read_json(path), now)):
                found[f"{stage}@{task}"] = changed
    return found


def code_at(root: Path, commit: str) -> Tree:
    """Return the code of a commit."""
    names = [*(f"{folder}/{name}" for folder in CODE for name in files(root, commit, folder)), LIBRARIES]
    contents = zip(names, blobs(root, commit, names), strict=True)
    return Tree(root, {name: content for name, content in contents if content is not None})


def folder_is_as_locked(root: Path, path: str) -> bool:
    """True if a folder matches dvc.lock; also if dvc.lock cannot be read or does not list it."""
    try:
        locked = [each.outs[path] for each in pipelines(_read(root, None, LOCK), WORKSPACE) if path in each.outs]
    except UserError:
        return True
    return not locked or locked[0] == md5_of_folder(root / path)


def commit_of(root: Path, name: str) -> str:
    """Return the commit of a git revision, DVC experiment or MLflow run. Raises UserError if there is none."""
    revision = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found := git(root, *revision).decode().strip() or _experiment(root, name):  # in DVC's order
        return found
    key = name.split()[-1] if name.split() else ""
    if len(key) >= _KEY:
        for other, (result, _) in all_results(root).items():
            if other.startswith(key) and result.commit:
                return result.commit
    raise UserError(
        f"{name!r} is not a commit, experiment or MLflow run: give `{WORKSPACE}`, a git revision, an experiment from"
        " `dvc exp list`, or a run's name or tag `key` (a run can be found only if a commit has its result; `dvc queue"
        " status` shows experiments that have not ended)"
    )


def _experiment(root: Path, name: str) -> str | None:
    """Return the commit of the experiment with this name: like DVC, the one based on HEAD, else the only one."""
    found = {baseline: commit for commit, (named, baseline) in experiments(root).items() if named == name}
    checked_out = head(root)
    if checked_out in found:
        return found[checked_out]
    if len(found) > 1:
        commits = ", ".join(commit[:_SHORT] for commit in found.values())
        raise UserError(f"{len(found)} experiments are named {name!r}: choose one by its commit ({commits})")
    return next(iter(found.values()), None)


@lru_cache(maxsize=1)
def _workspace_changes(root: Path) -> dict[str, list[str]]:
    """Return what has changed in the workspace. Raises UserError when DVC cannot tell, as while a stage runs."""
    from dvc.exceptions import DvcException

    try:
        return stale_stages(root, outputs=False)
    except (DvcException, OSError) as error:
        raise UserError(f"DVC says: {' '.join(str(error).split())}") from error


def _read(root: Path, commit: str | None, path: str) -> bytes:
    """Return a file's content in the workspace or at a commit; empty if missing."""
    if commit is not None:
        return blob(root, commit, path)
    file = root / path
    return file.read_bytes() if file.is_file() else b""


def _numbers(values: Any) -> Metrics:
    items = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in items if isinstance(value, int | float)}


def _some(names: Sequence[str], separator: str = ", ") -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return separator.join([*names[:_NAMED], *more])


_REMEDY = "name another in `evaluate.baseline`, or null for none"


def read_committed(commit: str, path: Path) -> str:
    """Read a file under reports/TASK of a commit, from git, DVC's cache or its remote.

    Raises UserError when none has it, or it is of another model than the commit's, as after training alone.
    """
    import dvc.api  # it takes a second, needed only with a baseline

    root = repository(Path()) or Path()
    try:
        text: str = dvc.api.read(f"{prefix(root)}{path.as_posix()}", repo=str(root), rev=commit, encoding="utf-8")
    except Exception as error:  # the clients of S3 and other remotes have errors of their own
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} of commit {commit} is not available ({reason}): `dvc fetch` it, or {_REMEDY}"
        ) from error
    found = {each.task: each for each in pipelines(blob(root, commit, LOCK), commit)}
    if path.parent.name in found and "evaluate" in found[path.parent.name].stale:
        raise UserError(f"commit {commit} contains the predictions of another model than its own ({LOCK}): {_REMEDY}")
    return text


Point = dict[str, float]


class Times(NamedTuple):
    """Times of a stage's run on this machine, and its speed."""

    start: float
    """Seconds since 1970."""
    end: float
    points: list[Point]
    """Training times in seconds and rates, by `step`."""


def note_times(task: str, stage: str, start: float, end: float, sent: Iterable[Any]) -> None:
    """Note a stage's times when its record of what it ran with is written; sent: its live metrics."""
    points = [{"step": event["step"], **_rates(event["values"])} for event in sent if _rates(event["values"])]
    write_json(_path(Path.cwd(), task, stage, run_of(task, stage)), Times(start, end, points)._asdict())


def run_of(task: str, stage: str) -> str:
    """Return a hash of what a stage and earlier ones ran with, according to the files in the current folder."""
    return _digest(stage, lambda each: _content(Path(ran_path(each, task))))


def times_of(result: Result, stage: str) -> Times | None:
    """Return the newest times of a stage that ran as the result's, after stages that did; None if none has here."""
    run = _digest(stage, lambda each: result.read(ran_path(each, result.task)) or b"")
    try:
        return Times(**json.loads(_path(result.root, result.task, stage, run).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _digest(stage: str, read: Callable[[str], bytes]) -> str:
    return content_md5(b"".join(read(each) for each in STAGES[: STAGES.index(stage) + 1]))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _rates(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if "second" in name}


def _path(folder: Path, task: str, stage: str, run: str) -> Path:
    return (repository(folder) or folder) / ".dvc" / "tmp" / "times" / task / f"{stage}-{run}.json"
