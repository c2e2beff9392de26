"""All that this project knows of DVC beyond its documented commands and API, written for DVC 3.67.

`commands/accepting.py` has the rest of it, what a stage's dependencies say of themselves. A test names the version
(tests/results/test_inside.py): after an upgrade it asks to look here first.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dvc.repo import Repo

DVC = "3.67"


def cached_object(repo: "Repo", md5: str) -> Path:
    """Where DVC's cache has, or would have, the content with this hash."""
    return Path(repo.cache.local.oid_to_path(md5))


def recorded_md5(repo: "Repo", place: Path) -> str | None:
    """The MD5 of a file or folder as DVC would record it; it remembers the hashes of files that it has seen."""
    from dvc_data.hashfile.build import build

    _, _, content = build(repo.cache.local, str(place), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
    md5: str | None = content.hash_info.value
    return md5


def run_cache(repo: "Repo") -> Path:
    """The folder with an entry for every stage that ran here."""
    return Path(repo.stage_cache.cache_dir)


def declared_of(repo: "Repo", name: str) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """A stage's parameters, by file, then by dotted name, and the paths that it depends on."""
    from dvc.dependency import ParamsDependency

    stage = repo.stage.load_one(str(Path(repo.root_dir, "dvc.yaml")), name)
    params = {dep.def_path: dep.read_params() for dep in stage.deps if isinstance(dep, ParamsDependency)}
    return params, [dep.def_path for dep in stage.deps if not isinstance(dep, ParamsDependency)]
