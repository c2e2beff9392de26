"""Verifies that the workspace reproduces the results of a commit."""

from collections.abc import Iterator
from pathlib import Path

from transformer.core.errors import UserError
from transformer.registry import is_made
from transformer.results.chain import DATA_STAGES, Chain, Stage
from transformer.results.differences import given, leaves
from transformer.results.dvc_inside import run_cache
from transformer.results.find import WORKSPACE, Results, find_results, results_at
from transformer.results.runcache import stages_run
from transformer.results.workspace import changed_since, of_chain, require_outputs
from transformer.text.clean import one_line

TOLERANCES = {
    "bleu": 3.0,
    "chrf": 3.0,
    "perplexity": 0.1,
    "accuracy": 0.04,
    "f1": 0.04,
    "macro_f1": 0.04,
    "roc_auc": 0.03,
}
"""Largest accepted difference of a metric between CPU types, about half the width of its 95 % interval."""

_SHOWN = 3

PERPLEXITY_SHARE = 0.05
"""The same for a perplexity above 2, whose interval grows with it, as a share of the committed value."""


def verify(root: Path, revision: str, *, exact: bool) -> Iterator[str]:
    """Yield one line per reproduced task; exact: require byte-identical outputs.

    Raises UserError when all tasks are done, with what is wrong with each: a stage differs (the first one is named), or
    the workspace has no result that was made here: stages do not belong together or are out of date, files are not
    those of dvc.lock, or it was fetched. Also when the commit's stages of a task that the workspace has a result of are
    none.
    """
    committed, own = find_results(root, revision), results_at(root, WORKSPACE, None)
    wrong = []
    for task in committed.chains:
        try:
            yield _verified(root, task, committed, own, exact=exact)
        except UserError as error:
            wrong.append(str(error))
    wrong += [why for task, why in committed.partial.items() if task in own.chains]
    if wrong:
        raise UserError("; ".join(wrong))


def _verified(root: Path, task: str, committed: Results, own: Results, *, exact: bool) -> str:
    """A line that says how well a task is reproduced. Raises UserError when it is not."""
    if task not in own.chains:
        raise UserError(own.partial.get(task) or f"the workspace has no complete result of {task}: run `dvc repro`")
    committed.require_own_files(task)
    _require_made_here(root, own.chains[task])
    first = _first_difference(committed.chains[task], own.chains[task])
    if first is None:
        return f"{task}: every stage wrote the same bytes as at {committed.name}"
    if exact or first.name in DATA_STAGES:
        raise UserError(
            f"{first.name}@{task}: {_differing(first, own.chains[task])} is not what {committed.name} has in dvc.lock:"
            " the stage is not repeatable, or its code changed without `dvc repro`"
        )
    _require_same_origin(committed, own, task)
    metrics = _metrics(task, committed, own)
    return f"{task}: {first.name} is the first stage whose bytes differ from {committed.name}; {metrics}"


def _require_same_origin(committed: Results, own: Results, task: str) -> None:
    """Raise UserError if the two results are of other code, versions or inputs: bytes differ for that, not a processor.

    What another task's stages wrote may differ as this task's does, and is verified with that task.
    """
    was, now = committed.chains[task], own.chains[task]
    code = sorted(path for path in {*was.code, *now.code} if was.code.get(path) != now.code.get(path))
    one, two = given(was), given(now)
    both = (path for path in one.keys() & two.keys() if not is_made(path))
    if other := [*code, *sorted(path for path in both if one[path] != two[path])]:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        raise UserError(
            f"{task}: {', '.join(other[:_SHOWN])}{more} {'differ' if len(other) > 1 else 'differs'} from"
            f" {committed.name}: only results of the same code, versions and inputs can be verified"
        )


def _require_made_here(root: Path, chain: Chain) -> None:
    """Raise UserError unless the workspace has the chain's files, up to date, and its stages ran on this machine."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    require_outputs(root, chain.outs)
    try:
        with Repo(str(root)) as repo:
            changed = of_chain(chain, changed_since(repo, missing=True))
            run = stages_run(run_cache(repo), chain)
    except DvcException as error:
        raise UserError(f"DVC cannot say whether the workspace is up to date: {one_line(str(error))}") from error
    for name, what in changed.items():
        raise UserError(f"{name} is not up to date ({', '.join(what)}): run `dvc repro`, then verify")
    if fetched := [stage.name for stage in chain.stages if stage.name not in run]:
        raise UserError(
            f"{chain.task}: nothing to verify: {', '.join(fetched)} did not run here, their outputs were fetched;"
            " run `dvc repro --force --no-run-cache`, then verify"
        )


def _first_difference(committed: Chain, own: Chain) -> Stage | None:
    """The first stage with other outputs. Raises UserError if parameters of any stage differ, also of a later one."""
    mine = {stage.name: stage for stage in own.executed}
    both = [(one, mine[one.name]) for one in committed.executed if one.name in mine]
    for one, other in both:
        if one.params != other.params:
            was, now = leaves(one.params), leaves(other.params)
            names = ", ".join(sorted(name for name in {*was, *now} if was.get(name) != now.get(name)))
            raise UserError(
                f"{one.name}@{own.task}: parameters differ ({names}): only the same parameters can be verified"
            )
    return next((one for one, other in both if one.outs != other.outs), None)


def _differing(stage: Stage, own: Chain) -> str:
    return next(path for path, md5 in stage.outs.items() if own.outs.get(path) != md5)


def _metrics(task: str, committed: Results, own: Results) -> str:
    """A phrase that says how much the metrics differ. Raises UserError when one is beyond its tolerance."""
    was, now = committed.figures(task), own.figures(task)
    found = []
    for split, figures in was.items():
        for name, tolerance in TOLERANCES.items():
            if name not in figures:
                continue
            if name == "perplexity":
                tolerance = max(tolerance, PERPLEXITY_SHARE * figures[name])
            difference = abs(now.get(split, {}).get(name, float("inf")) - figures[name])
            if not difference <= tolerance:
                raise UserError(
                    f"evaluate@{task}: {name} on {split} differs by {difference:.3g} from {committed.name};"
                    f" another CPU type explains at most {tolerance:.3g}"
                )
            found.append(difference / tolerance)
    if not found:
        raise UserError(f"evaluate@{task}: {committed.name} has no metric with a tolerance: verify with --exact")
    return f"the metrics differ by up to {100 * max(found):.0f} % of their tolerance"
