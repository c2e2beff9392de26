"""The names of a result in MLflow: of its row and of its registered model."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from transformer.results.chain import Chain

_UNFIT = re.compile(r"[^\w.-]+")
_NAMELESS = "local"
_LETTERS = 100
_SHORT = 8  # digits of a key


def row_name(chain: Chain, changes: str = "") -> str:
    """The name of the result's row if no experiment gives it one.

    changes: the changed hyperparameters, which replace the task. Examples are `translation de-en 0b1f7a52` and
    `de-en d_model=512 0b1f7a52`.
    """
    parts = ["" if changes else chain.task, "-".join(languages(chain)), changes, chain.row_key()[:_SHORT]]
    return " ".join(filter(None, parts))


def export_params(chain: Chain) -> dict[str, Any]:
    """The parameters of the export stage: `registered_name`, `alias`."""
    return _section(chain, "export")


def registered_name(chain: Chain) -> str:
    """`export.registered_name`, or a name made of the task, the languages and the corpus.

    Examples are `translation-de-en-multi30k` and `sentiment-imdb`, so models for different purposes have different
    names. The corpus is `sample`, or the last part of the Hub repository's (and its
    configuration) or local folder's name.
    """
    given = export_params(chain)["registered_name"]
    if given is not None:
        return str(given)
    return "-".join([chain.task, *languages(chain), _corpus(_section(chain, "download"))])


def languages(chain: Chain) -> list[str]:
    """The codes of the source and target language; empty for a task that does not translate."""
    section = _section(chain, "tokenize")
    return [str(section[side]) for side in ("source", "target") if side in section]


def _corpus(download: Mapping[str, Any]) -> str:
    source = download["source"]
    if source == "sample":
        return "sample"
    name = PurePath(str(download["repository" if source == "hub" else "path"])).name
    if source == "hub" and (configuration := download.get("configuration")):
        name = f"{name}-{configuration}"
    return _UNFIT.sub("-", name).strip("-.")[:_LETTERS] or _NAMELESS


def _section(chain: Chain, name: str) -> dict[str, Any]:
    return dict(next(iter(chain.params.values()))[f"{chain.task}.{name}"])
