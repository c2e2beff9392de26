"""Chooses the best registered version among those that were scored alike, according to their tags."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.files import read_json
from transformer.results.chain import Chain
from transformer.results.headline import measured
from transformer.results.naming import export_params, languages
from transformer.results.origin import Origin
from transformer.tracking.store import existing, repeated

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.tracking import MlflowClient

_ALIAS = "alias"
_GROUP = ("validation texts", "languages", "metric", "metric's settings")
_LOOKS = 5


@dataclass(frozen=True)
class Entry:
    """A version's score, and what it was computed on."""

    row_key: str
    metric: str
    """Including the split: `validation.bleu`."""
    value: float
    higher_is_better: bool
    validation: str
    """The SHA-256 of the validation split."""
    direction: str
    """Source and target language, `de-en`; empty for a task that does not translate."""
    settings: str
    """The metric's settings, without the library's version. Decoding is not in it: it is part of what competes."""
    made: int
    """When the result was made, in seconds."""

    @property
    def group(self) -> tuple[str, ...]:
        """Versions compete only within their group."""
        return (self.validation, self.direction, self.metric, self.settings)

    @property
    def rank(self) -> tuple[float, int, str]:
        """Sort key: the best of a group comes first; ties go to the earliest."""
        return (-self.value if self.higher_is_better else self.value, self.made, self.row_key)

    def tags(self) -> dict[str, str]:
        """The version's tags, from which `read` restores the entry."""
        return {
            "row_key": self.row_key,
            self.metric: str(self.value),
            "metric": self.metric,
            "metric.settings": self.settings,
            "metric.higher_is_better": str(self.higher_is_better).lower(),
            "validation.sha256": self.validation,
            "direction": self.direction,
            "made": str(self.made),
        }

    @classmethod
    def read(cls, tags: Mapping[str, str]) -> "Entry | None":
        """The entry of a version with these tags; None if it has no score."""
        try:
            entry = cls(
                row_key=tags["row_key"],
                metric=tags["metric"],
                value=float(tags[tags["metric"]]),
                higher_is_better=tags["metric.higher_is_better"] == "true",
                validation=tags["validation.sha256"],
                direction=tags.get("direction", ""),
                settings=tags.get("metric.settings", ""),
                made=int(tags["made"]),
            )
        except (KeyError, ValueError):
            return None
        return None if math.isnan(entry.value) else entry


def entry_of(chain: Chain, origin: Origin, folder: Path) -> Entry:
    """The entry of a result whose files are in `folder` at their own paths."""
    task = chain.task
    metric = read_json(folder / "models" / task / "bundle" / "config.json")["main_metric"]
    provenance = read_json(folder / "data" / task / "corpus" / "provenance.json")
    return Entry(
        row_key=chain.row_key(),
        metric=metric["name"],
        value=float(metric["value"]),
        higher_is_better=bool(metric["higher_is_better"]),
        validation=provenance["sha256"]["validation"],
        direction="-".join(languages(chain)),
        settings=measured(metric["name"].partition(".")[2], read_json(folder / "reports" / task / "evaluation.json")),
        made=origin.time,
    )


def version_tags(chain: Chain, entry: Entry) -> dict[str, str]:
    """All tags of a result's version: its entry's, and the alias that it competes for."""
    return {**entry.tags(), _ALIAS: str(export_params(chain)["alias"])}


def place_aliases(client: "MlflowClient") -> None:
    """Call `place_alias` for every name and alias of the tagged versions in the registry."""
    tagged = (version for version in all_versions(client) if Entry.read(version.tags))
    for name, alias in sorted({(v.name, v.tags[_ALIAS]) for v in tagged if _ALIAS in v.tags}):
        place_alias(client, name, alias)


def place_alias(client: "MlflowClient", name: str, alias: str) -> None:
    """Give the alias to the best version in the newest result's group.

    The choice depends only on the versions' tags, not on the order of registration. Versions whose run is deleted do
    not count. If none counts, the alias stays only on a version without a score, whose run counts.
    """
    for _ in range(_LOOKS):  # another machine may have registered a better one meanwhile
        if not repeated(lambda: _moved(client, name, alias)):
            return


def _moved(client: "MlflowClient", name: str, alias: str) -> bool:
    """Give the alias to the version that is best now, or take it away. Returns whether that changed anything."""
    versions = all_versions(client, name)
    competing = [
        (entry, version)
        for version in versions
        if (entry := Entry.read(version.tags)) and version.tags.get(_ALIAS, alias) == alias
    ]
    best = _best(client, competing)
    held = client.get_registered_model(name).aliases.get(alias)
    if best is not None:
        if str(held) == str(best.version):  # some of MLflow's stores return str, others int
            return False
        client.set_registered_model_alias(name, alias, best.version)
    elif held is not None and not living_run(client, client.get_model_version(name, str(held)).run_id):
        client.delete_registered_model_alias(name, alias)
    else:
        return False
    return True


def holder(client: "MlflowClient", name: str, alias: str) -> "ModelVersion | None":
    """The version of a name that has the alias."""
    model = existing(partial(client.get_registered_model, name))
    version = model and model.aliases.get(alias)
    return existing(partial(client.get_model_version, name, str(version))) if version else None


def moved_in_words(before: "ModelVersion | None", after: "ModelVersion | None", alias: str) -> str:
    """What to say of an alias that went to a version that did not compete with the one before; else nothing."""
    one, two = (version and Entry.read(version.tags) for version in (before, after))
    if not (before and after and one and two) or one.group == two.group:
        return ""
    other = [what for what, was, now in zip(_GROUP, one.group, two.group, strict=True) if was != now]
    return (
        f"{after.name}@{alias} moved from version {before.version} to {after.version}, whose {' and '.join(other)}"
        " are others, so their scores do not compare: `export.registered_name` gives models names of their own"
    )


def remove_versions(client: "MlflowClient", run_id: str) -> None:
    """Delete a run's registered versions, and give their aliases to the best of the others."""
    versions = [*client.search_model_versions(f"run_id = '{run_id}'")]
    for version in versions:
        existing(partial(client.delete_model_version, version.name, version.version))  # or somebody else has done it
    for name, alias in sorted({(each.name, each.tags[_ALIAS]) for each in versions if _ALIAS in each.tags}):
        place_alias(client, name, alias)


def _best(client: "MlflowClient", competing: "list[tuple[Entry, ModelVersion]]") -> "ModelVersion | None":
    # Runs are looked up lazily, in order, until one counts.
    newest = sorted(competing, key=lambda each: (each[0].made, each[0].row_key), reverse=True)
    group = next((entry.group for entry, version in newest if living_run(client, version.run_id)), None)
    rivals = [each for each in competing if each[0].group == group]
    ranked = sorted(rivals, key=lambda each: (*each[0].rank, int(each[1].version)))
    return next((version for _, version in ranked if living_run(client, version.run_id)), None)


def living_run(client: "MlflowClient", run_id: str | None) -> Any:
    """The run with this id; None if it does not exist or is in the trash."""
    run = existing(partial(client.get_run, run_id)) if run_id else None
    return run if run is not None and run.info.lifecycle_stage == "active" else None


def all_versions(client: "MlflowClient", name: str | None = None) -> "list[ModelVersion]":
    """All versions of a name, or of all names."""
    found: list[ModelVersion] = []
    token = None
    while True:
        page = client.search_model_versions(f"name = '{name}'" if name else None, page_token=token)
        found += page
        token = page.token
        if not token:
            return found
