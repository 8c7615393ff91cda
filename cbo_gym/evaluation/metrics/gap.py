"""GAP and PA-GAP, metrics of Huang et al. (2026): how close a run came to the optimum, and how early.

Both are computed from i_t = (b_t - b_0) / (r - b_0), clipped to [0, 1]: b_t is the best value after round t, b_0 the
value before the first round, and r a reference. There are two versions:

* expected rewards: b_t is the best E[Y | a] of an action so far, b_0 that of the initial data, r the optimum;
* the convention of the paper, columns ``survey_...``: b_t and b_0 are observed rewards, r is the suite's reference.

Without initial data b_0 is the mean reward of random actions. In contextual mode b_t is the optimum minus the least
regret so far. Under constraints only feasible actions count. See docs/guide/evaluation.md for the limits of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from cbo_gym.evaluation.metrics.regret import TIE_DECIMALS
from cbo_gym.evaluation.runs.results import Run, stack_curves
from cbo_gym.evaluation.suites import package_references

Array = np.ndarray

# Numbers of rounds at which the metrics are computed.
BUDGETS = (20, 50, 100)
# Prefixes of the columns of both versions.
EXPECTED, SURVEY = "", "survey_"
OVER_TIME = "gap_over_time"
# Columns of both versions, and the column of dynamic mode.
GAPS = (
    *(f"{version}{name}_{budget}" for version, name, budget in product((EXPECTED, SURVEY), ("gap", "pa_gap"), BUDGETS)),
    OVER_TIME,
)


def improvements(values: Array, initial: float | Array, reference: float | Array) -> Array:
    """Return max(b_t - b_0, 0) / (r - b_0), where b_t is the best value so far; it is not clipped at 1.

    If b_0 is not below r, any improvement counts as more than 1, as in the paper.

    Args:
        values: values of the rounds, shape ``(..., rounds)`` with at least one round.
        initial: b_0, a number or shape ``(...)``.
        reference: r, a number or shape ``(...)``.
    """
    values = np.asarray(values, dtype=float)
    initial, reference = (np.asarray(number, dtype=float)[..., None] for number in (initial, reference))
    improvement = np.maximum(np.maximum.accumulate(values, axis=-1) - initial, 0.0)
    possible = reference - initial
    share = improvement / np.where(possible > 0.0, possible, 1.0)
    return np.where(possible > 0.0, share, np.where(improvement > 0.0, 1.0 + improvement, 0.0))


def gap(values: Array, initial: float | Array, reference: float | Array) -> Array:
    """Return GAP, (i_B + (B - t*) / B) / (1 + (B - 1) / B), where B is the number of rounds.

    t* is the first round with the best value, or B if no value exceeds b_0. Values that agree to nine decimals of r -
    b_0 count as equal. Arguments are those of :func:`improvements`.

    Returns:
        Numbers in [0, 1] of shape ``(...)``.
    """
    gained = improvements(values, initial, reference).round(TIE_DECIMALS)
    budget = gained.shape[-1]
    best = gained[..., -1]
    first_best = np.where(best > 0.0, np.argmax(gained == best[..., None], axis=-1) + 1, budget)
    return (np.minimum(best, 1.0) + (budget - first_best) / budget) / (1.0 + (budget - 1.0) / budget)


def path_aware_gap(values: Array, initial: float | Array, reference: float | Array) -> Array:
    """Return PA-GAP, the mean of i_t (B - t + 1) / B over rounds t; arguments are those of :func:`gap`."""
    gained = np.minimum(improvements(values, initial, reference), 1.0)
    budget = gained.shape[-1]
    return (gained * (np.arange(budget, 0, -1) / budget)).mean(axis=-1)


def gap_over_time(values: Array, initial: Array, reference: Array, slices: Array) -> Array:
    """Return G_t of every slice, by which Aglietti et al. (2021), sec. 4, compare methods over time.

    It is :func:`gap` in each slice of time. The paper does not say how tiny improvements count; here values are rounded
    to a hundredth of the way from b_0 to the optimum.

    Args:
        values: expected rewards of the rounds, shape ``(n,)``.
        initial: b_0 in each round, shape ``(n,)``: the mean reward of random actions, so that a good first action is
            not a disadvantage. The paper takes the first action, its program the worst first action of all methods.
        reference: optimum in each round, given what was implemented in earlier slices, shape ``(n,)``.
        slices: slice of each round, shape ``(n,)``.

    Returns:
        Numbers in [0, 1], one for each slice that was reached, in order.
    """
    values, initial, reference = (np.asarray(array, dtype=float) for array in (values, initial, reference))
    gaps = []
    for index in np.unique(slices):
        in_slice = np.asarray(slices) == index
        progress = improvements(values[in_slice], float(initial[in_slice][0]), float(reference[in_slice][0]))
        gaps.append(gap(np.minimum(progress, 1.0).round(2), 0.0, 1.0))
    return np.array(gaps)


def gaps_of(run: Run) -> dict[str, float | None]:
    """Return the columns :data:`GAPS` of a finished run, see :func:`gaps`, with None in place of NaN."""
    return {name: None if np.isnan(values[0]) else float(values[0]) for name, values in gaps([run]).items()}


def gaps(runs: Sequence[Run]) -> dict[str, Array]:
    """Return the columns :data:`GAPS` of finished runs with the same horizon and columns, shape ``(runs,)`` each.

    A value is NaN if a run has fewer rounds than the budget or did not record b_0. In dynamic mode only
    :data:`OVER_TIME` has values, in other modes it has none.
    """
    columns = {name: np.full(len(runs), np.nan) for name in GAPS}
    if "slice" in runs[0].columns:
        return columns | {OVER_TIME: np.array([mean_slice_gap(run) for run in runs])}
    for version, field in ((EXPECTED, "initial_expected"), (SURVEY, "initial_reward")):
        # Positions of the runs that recorded b_0.
        known = [index for index, run in enumerate(runs) if getattr(run, field) is not None]
        if not known:
            continue
        known_runs = [runs[index] for index in known]
        initial = np.array([getattr(run, field) for run in known_runs], dtype=float)
        if version == EXPECTED:
            reference = np.array([run.optimum for run in known_runs])
            values = reference[:, None] - stack_curves(known_runs, ["best_so_far_regret"])["best_so_far_regret"]
        else:
            reference = np.array([package_references().get(run.env, run.optimum) for run in known_runs])
            curves = stack_curves(known_runs, ["reward", *(["feasible"] if known_runs[0].is_constrained else [])])
            values = np.where(curves.get("feasible", True), curves["reward"], -np.inf)
        for budget in BUDGETS:
            if budget <= values.shape[-1]:
                columns[f"{version}gap_{budget}"][known] = gap(values[:, :budget], initial, reference)
                columns[f"{version}pa_gap_{budget}"][known] = path_aware_gap(values[:, :budget], initial, reference)
    return columns


def slice_gaps(run: Run) -> Array:
    """Return :func:`gap_over_time` of a finished run in dynamic mode."""
    names = ("expected_reward", "instant_regret", "random_reward", "slice")
    curves = stack_curves([run], names)
    expected, regrets, random_rewards, slices = (curves[name][0] for name in names)
    return gap_over_time(expected, random_rewards, expected + regrets, slices)


def mean_slice_gap(run: Run) -> float:
    """Return the mean of :func:`slice_gaps`, by which methods are compared over time."""
    return float(slice_gaps(run).mean())
