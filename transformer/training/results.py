"""What a finished training writes: the model, the best epoch's figures, and the history."""

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
    """Write the best weights and `config` to `trained`, figures to `metrics`, one row an epoch to `history`.

    figures: further numbers for `metrics`. Returns the best epoch's row.
    """
    rows, best = fitted.history.rows, fitted.history.best_row
    save_trained(trained, config, fitted.state)
    write_table(history, list(rows[0]), (list(row.values()) for row in rows))
    where = {"device": compute.device.type, "precision": compute.precision}
    totals = {"best_epoch": best["epoch"], "epochs": len(rows), "steps": fitted.steps}
    final = {name: value for name, value in best.items() if name.endswith(("_loss", "_perplexity", "_accuracy"))}
    write_json(metrics, final | totals | dict(figures) | where)
    return best
