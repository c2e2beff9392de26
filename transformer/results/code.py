"""The code of results: the fingerprints that belong to one, and the code of a commit."""

import json
from pathlib import Path
from typing import Any

from transformer.core.code import CODE, LOCK, Tree, changes_in
from transformer.results.chain import Chain
from transformer.results.git import blob, blobs, files
from transformer.results.workspace import content_md5


def tree_at(root: Path, commit: str) -> Tree:
    """The code of a commit."""
    names = [*(f"{folder}/{name}" for folder in CODE for name in files(root, commit, folder)), LOCK]
    contents = zip(names, blobs(root, commit, names), strict=True)
    return Tree(root, {name: content for name, content in contents if content is not None})


def code_of(root: Path, commit: str | None, chain: Chain) -> dict[str, dict[str, Any]]:
    """The fingerprints that a chain in dvc.lock is of, by path, as far as the commit (None: the workspace) has them."""
    found = {}
    for path, md5 in chain.code.items():
        content = blob(root, commit, path) if commit else (root / path).read_bytes() if (root / path).is_file() else b""
        if content_md5(content) == md5:
            found[path] = json.loads(content)
    return found


def newer_code(root: Path, commit: str, chain: Chain) -> dict[str, list[str]]:
    """The code of a commit that its result is not of, by stage: somebody has committed an edit without a run."""
    tree = tree_at(root, commit)
    found = {Path(path).stem: changes_in(tree, code) for path, code in code_of(root, commit, chain).items()}
    return {f"{stage}@{chain.task}": changed for stage, changed in found.items() if changed}
