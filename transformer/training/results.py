"""What a finished training writes: the model, its figures, and the history."""

from collections.abc import Mapping
from pathlib import Path

from transformer.files import write_json, write_table
from transformer.params.schema import Section
from transformer.training.device import Compute
from transformer.training.loop import Fitted
from transformer.training.trained import save_trained


def write_results(
    fitted: Fitted,
    config: Section,
    compute: Compute,
    figures: Mapping[str, int],
    *,
    trained: Path,
    metrics: Path,
    history: Path,
) -> dict[str, float]:
    """Write the kept weights and `config` to `trained`, figures to `metrics`, one row an epoch to `history`.

    figures: further numbers for `metrics`. Returns the kept weights' row.
    """
    rows, kept = fitted.history.rows, fitted.figures
    save_trained(trained, config, fitted.state)
    write_table(history, list(rows[0]), (list(row.values()) for row in rows))
    where = {"device": compute.device.type, "precision": compute.precision}
    totals = {"best_epoch": fitted.history.best_row["epoch"], "epochs": len(rows), "steps": fitted.steps}
    final = {name: value for name, value in kept.items() if name.endswith(("_loss", "_perplexity", "_accuracy"))}
    write_json(metrics, final | totals | dict(figures) | where)
    return kept
