"""The figures that need no trained model: positions, scale, masks, schedules."""

from pathlib import Path

from transformer.figures.schedules import schedules_figure
from transformer.figures.style import save
from transformer.figures.theory import masks_figure, positions_figure, scale_figure
from transformer.training.schedule import Schedule


def explain(folder: Path, schedule: Schedule) -> int:
    """Write them to `folder` and return how many; schedule: that of the training."""
    figures = {
        "positions": ("Heat map of the sinusoidal position table", positions_figure),
        "scale": ("Softmax of scores with and without division by the root of d_k", scale_figure),
        "masks": ("Padding and causal masks", masks_figure),
        "schedules": ("Learning rate by update for every schedule", lambda: schedules_figure(schedule)),
    }
    for name, (title, draw) in figures.items():
        save(folder / f"{name}.svg", title, draw)
    return len(figures)
