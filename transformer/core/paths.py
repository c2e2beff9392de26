"""Files and folders of a task's stages, named as in dvc.yaml."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transformer.core.errors import UserError


def _no_commits(commit: str, path: Path) -> str:
    raise UserError(f"{path} of commit {commit} cannot be read here")


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Files and folders of one task. A stage reads and writes what dvc.yaml declares for it, and nothing else."""

    data: Path
    models: Path
    reports: Path
    states: Path | None = None
    """Folder for the checkpoints of interrupted trainings; None disables checkpoints."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Hashes, by file, of the code that computes updates; checkpoints of other code are not resumed."""
    committed: Callable[[str, Path], str] = _no_commits
    """Reads a file under reports/TASK of a commit's result. Raises UserError when that is not available."""

    @property
    def corpus(self) -> Path:
        """Rows by split, `provenance.json`, the class names."""
        return self.data / "corpus"

    @property
    def tokens(self) -> Path:
        """The corpus split into tokens, and `pretokenizer.json`."""
        return self.data / "tokens"

    @property
    def vocab(self) -> Path:
        """The vocabularies."""
        return self.data / "vocab"

    @property
    def encoded(self) -> Path:
        """The memory-mapped store of token ids."""
        return self.data / "encoded"

    @property
    def baselines(self) -> Path:
        """The user's prediction files to compare with."""
        return self.data.parent / "local" / "baseline" / self.data.name

    @property
    def trained(self) -> Path:
        """The kept weights and their configuration."""
        return self.models / "trained"

    @property
    def bundle(self) -> Path:
        """The exported model."""
        return self.models / "bundle"

    @property
    def converted(self) -> Path:
        """The exported model in other formats."""
        return self.models / "converted"

    @property
    def statistics(self) -> Path:
        """Statistics of the vocabularies."""
        return self.reports / "vocabulary.json"

    @property
    def training(self) -> Path:
        """Metrics of the kept weights."""
        return self.reports / "training.json"

    @property
    def history(self) -> Path:
        """Training history, one row per epoch."""
        return self.reports / "history.tsv"

    @property
    def updates(self) -> Path:
        """Training loss over the updates, at about a hundred points."""
        return self.reports / "updates.tsv"

    @property
    def figures(self) -> Path:
        """Attention maps and figures of the theory."""
        return self.reports / "figures"

    @property
    def evaluation(self) -> Path:
        """Metrics of validation and test."""
        return self.reports / "evaluation.json"

    @property
    def predictions(self) -> Path:
        """The model's answers, one row per text."""
        return self.reports / "predictions.tsv"

    @property
    def plots(self) -> Path:
        """Numeric tables for DVC's plots."""
        return self.reports / "plots"

    @property
    def tables(self) -> Path:
        """Tables with corpus texts, for the report."""
        return self.reports / "tables"

    @property
    def conversion(self) -> Path:
        """What `convert` wrote and verified."""
        return self.reports / "conversion.json"
