"""The quantities that figures and tables of papers show, from runs."""

from collections.abc import Callable

import numpy as np

from cbo_gym.evaluation.claims.papers import Quantity
from cbo_gym.evaluation.metrics.gap import mean_slice_gap
from cbo_gym.evaluation.runs.results import Run
from website.papers.figures import curve_of

QUANTITIES: dict[Quantity, str] = {
    "average_reward": "Average expected reward over the rounds so far",
    "best_reward": "Best expected reward of the actions so far",
    "average_regret": "Average regret over the rounds so far",
    "simple_regret": "Regret of the recommended action",
    "average_pseudo_regret": "Mean of mu\\* - y over the rounds so far",
    "run_seconds": "Seconds of a run",
    "run_minutes": "Minutes of a run",
    "gap_over_time": "G_t, mean over the slices",
    "feasible_share": "Share of rounds with a feasible action",
    "lacking": "Regret of the best feasible action, 1 for a random one",
    "best_so_far_regret": "Regret of the best so far",
    "gd_plus": "GD+ of the recommendation",
    "igd_plus": "IGD+ of the recommendation",
}
#: Quantities by the clock.
TIMES: tuple[Quantity, ...] = ("run_seconds", "run_minutes")


def run_seconds(run: Run) -> float:
    """Return the seconds that the agent takes."""
    return run.reset_seconds + run.seconds_a_round * run.horizon


#: Numbers of whole runs, which have no curve.
NUMBERS: dict[Quantity, Callable[[Run], float]] = {
    "run_seconds": run_seconds,
    "run_minutes": lambda run: run_seconds(run) / 60.0,
    "gap_over_time": mean_slice_gap,
    "feasible_share": lambda run: float(np.mean(run.table["feasible"].to_numpy())),
    "lacking": lambda run: float(run.table["best_so_far_regret"][-1]) / (run.optimum - run.random_value),
}


def quantity_of(run: Run, quantity: Quantity, after: int) -> float:
    """Return the quantity of a figure for one run after a number of rounds; NaN without a recommendation there."""
    return NUMBERS[quantity](run) if quantity in NUMBERS else float(curve_of(run, quantity)[after - 1])
