"""The learning rate of every schedule over a training (Vaswani et al. 2017, eq. 3, and its relatives)."""

from dataclasses import replace
from typing import get_args

from matplotlib.figure import Figure

from transformer.figures.style import COLOURS, DASHES
from transformer.training.config import TrainParams
from transformer.training.schedule import Schedule

_POINTS = 400


def learning_rates(schedule: Schedule, steps: list[int]) -> dict[str, list[float]]:
    """The learning rate at each of `steps` (from 1) by schedule; all else as with the given one.

    A schedule that does not go with the other parameters is left out.
    """
    rates = {}
    for name in get_args(TrainParams.model_fields["schedule"].annotation):
        try:
            other = TrainParams.model_validate(schedule.params.model_dump() | {"schedule": name})
        except ValueError:
            continue
        rates[name] = [replace(schedule, params=other)(step) for step in steps]
    return rates


def schedules_figure(schedule: Schedule) -> Figure:
    """Every schedule with this training's parameters as a share of its highest rate, its own one thick."""
    params, total = schedule.params, schedule.total
    steps = sorted({max(1, round(total * point / _POINTS)) for point in range(_POINTS + 1)})
    figure = Figure(figsize=(8.0, 3.6))
    axes = figure.subplots()
    for index, (name, rates) in enumerate(learning_rates(schedule, steps).items()):
        own, highest = name == params.schedule, max(rates)
        axes.plot(
            steps,
            [rate / highest for rate in rates],
            color=COLOURS[index % len(COLOURS)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=3.0 if own else 1.2,
            zorder=3 if own else 2,
            label=f"{name} (this training)\nhighest {highest:.3g}" if own else name,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, total)
    axes.set_title(f"Learning-rate schedules, {params.warmup} steps of warmup")
    axes.set_xlabel("update")
    axes.set_ylabel("learning rate / its highest")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
