"""All uses of DVC's internals, beyond its documented commands and API; written for DVC 3.67.

The only others are in `commands/accepting.py`, which asks dependencies for their state. A test pins the version
(tests/results/test_inside.py), so that an upgrade starts with a review of this file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dvc.repo import Repo

DVC = "3.67"


def cached_object(repo: "Repo", md5: str) -> Path:
    """The path in DVC's cache of the content with this hash, whether or not it is there."""
    return Path(repo.cache.local.oid_to_path(md5))


def recorded_md5(repo: "Repo", place: Path) -> str | None:
    """The MD5 that DVC would record for a file or folder; hashes of unchanged files come from its own database."""
    from dvc_data.hashfile.build import build

    _, _, content = build(repo.cache.local, str(place), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
    md5: str | None = content.hash_info.value
    return md5


def run_cache(repo: "Repo") -> Path:
    """The folder of DVC's run cache, with an entry for every stage that ran here."""
    return Path(repo.stage_cache.cache_dir)


def experiment_state(repo: "Repo", name: str) -> str | None:
    """`running` for the experiment that runs in the workspace, else what `dvc queue status` says, in lower case."""
    queues = repo.experiments
    if queues.workspace_queue.get_running_exp() == name:
        return "running"
    return next((entry["status"].lower() for entry in queues.celery_queue.status() if entry["name"] == name), None)


def declared_of(repo: "Repo", name: str) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """A stage's parameters, by file, then by dotted name, and the paths of its other dependencies."""
    from dvc.dependency import ParamsDependency

    stage = repo.stage.load_one(str(Path(repo.root_dir, "dvc.yaml")), name)
    params = {dep.def_path: dep.read_params() for dep in stage.deps if isinstance(dep, ParamsDependency)}
    return params, [dep.def_path for dep in stage.deps if not isinstance(dep, ParamsDependency)]
