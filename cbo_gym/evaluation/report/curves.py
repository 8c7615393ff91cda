"""Compute the curves of a report, which :mod:`.plots` draws with Matplotlib and :mod:`.page` as interactive charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np
import polars as pl

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.registry import find_entry
from cbo_gym.evaluation.comparison.leaderboard import ENOUGH_SEEDS, Leaderboard
from cbo_gym.evaluation.metrics import aggregate
from cbo_gym.evaluation.metrics.regret import running_frequencies
from cbo_gym.evaluation.report.palette import LineStyle, line_style, line_styles
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run, stack_curves
from cbo_gym.problems import build_problem

Array = np.ndarray
# Agent, or another name in the legend -> style of its line.
LineStyles = Mapping[str, LineStyle]
# Names of objectives, and the Pareto front, shape ``(n, objectives)``.
Front = tuple[list[str], np.ndarray]
# Column of a run with the expected rewards of its recommended actions.
RECOMMENDED = "recommended_rewards"

# Number of bootstrap resamples.
BOOTSTRAP_DRAWS = 1000
# Largest number of ticks on a logarithmic axis.
MAX_TICKS = 5
# Smallest simple regret that is drawn, divided by the gap between the optimum and random play.
MIN_SIMPLE_REGRET = 1e-4
# Largest number of target sets or scopes with a separate line; the others share one.
MAX_CHOICES = 8
# Name of the line of the others.
OTHERS = "others"
# Limits of a vertical axis of shares.
SHARE_LIMITS = (0.0, 1.02)
# Number of steps of an axis of costs.
COST_STEPS = 150
# Largest number of points of a line on a page, about one per pixel.
MAX_CHART_ROUNDS = 150


@dataclass(frozen=True)
class Curve:
    """Mean over seeds with its spread.

    Attributes:
        x: positions on the horizontal axis, such as rounds from 1, shape ``(n,)``.
        mean: mean over seeds, shape ``(n,)``.
        low, high: ends of the 95 % interval of the mean, shape ``(n,)``; None with fewer than five seeds.
        runs: the single runs if there are two to four seeds, shape ``(seeds, n)``; otherwise empty, shape ``(0, n)``.
        seeds: number of seeds.
    """

    x: Array
    mean: Array
    low: Array | None
    high: Array | None
    runs: Array
    seeds: int


def curve(values: Array, floor: float = -np.inf, x: Array | None = None) -> Curve:
    """Compute the mean over seeds and its interval, in every round or at other positions.

    The interval is a percentile bootstrap of the seeds, see :func:`aggregate.bootstrap`.

    Args:
        values: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        floor: lower values are raised to it, for logarithmic axes.
        x: positions on the horizontal axis, shape ``(rounds,)``; None for the rounds from 1.
    """
    known = ~np.isnan(values).any(axis=0)
    x, values = (np.arange(1, len(known) + 1) if x is None else x)[known], values[:, known]
    seeds = len(values)
    mean = values.mean(axis=0).clip(min=floor)
    if seeds < aggregate.MIN_SEEDS:
        runs = values if seeds > 1 else values[:0]
        return Curve(x, mean, None, None, runs.clip(min=floor), seeds)
    low, high = aggregate.interval(_bootstrap(seeds) @ values)
    return Curve(x, mean, low.clip(min=floor), high.clip(min=floor), values[:0], seeds)


@cache
def _bootstrap(seeds: int) -> Array:
    """Return weights of resamples, shape ``(draws, seeds)``, always the same, so that figures can be reproduced."""
    return aggregate.bootstrap(np.zeros((1, seeds)), BOOTSTRAP_DRAWS, np.random.default_rng(0)).weights()[:, 0]


@dataclass(frozen=True)
class HorizontalAxis:
    """Horizontal axis of a figure.

    Attributes:
        title: title of the axis.
        matplotlib_title: title with mathematics, for Matplotlib.
        x: positions at which curves are drawn, shape ``(n,)``.
        chart_x: those of them that interactive charts show.
    """

    title: str
    matplotlib_title: str
    x: Array
    chart_x: Array

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        """Convert values after each round, shape ``(seeds, rounds)``, to values at ``x``, shape ``(seeds, n)``."""
        return curves


class Rounds(HorizontalAxis):
    """Horizontal axis of rounds, for finished runs of one environment."""

    def __init__(self, runs: Sequence[Run]) -> None:
        horizon = runs[0].horizon
        chart_x = np.unique(np.linspace(1, horizon, min(horizon, MAX_CHART_ROUNDS)).round().astype(int))
        super().__init__("Round", "Round $t$", np.arange(1, horizon + 1), chart_x)


class CostPaid(HorizontalAxis):
    """Horizontal axis of the cumulative cost of actions, for finished runs of one environment.

    Runs reach a cost after different numbers of rounds. The value of a run at a cost c is its value after the last
    round whose cumulative cost is at most c: NaN before the first round, and constant after the end of the run. An
    agent's curve ends at the cost of its most expensive run. In rounds without a value, such as a recommendation, the
    last earlier value is used.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        groups = by_agent(runs, {run.agent for run in runs}).values()
        costs_by_agent = [_cumulative_costs(group) for group in groups]
        ends = np.array([(costs[:, 0].max(), costs[:, -1].max()) for costs in costs_by_agent])
        x = np.unique([*np.linspace(0.0, ends.max(), COST_STEPS + 1), *ends.ravel()])
        super().__init__("Cost paid", "Cost paid", x, x)

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        costs = _cumulative_costs(runs)
        last_known = np.maximum.accumulate(np.where(np.isnan(curves), 0, np.arange(curves.shape[1])), axis=1)
        curves = np.take_along_axis(curves, last_known, axis=1)
        rounds = np.stack([np.searchsorted(costs_of_run, self.x, side="right") for costs_of_run in costs]) - 1
        values = np.take_along_axis(curves, rounds.clip(min=0), axis=1)
        return np.where((rounds < 0) | (self.x > costs[:, -1].max()), np.nan, values)


def _cumulative_costs(runs: Sequence[Run]) -> Array:
    """Return the cost paid by each run up to each round, shape ``(seeds, rounds)``."""
    return np.stack([np.cumsum(run.curve("cost")) for run in runs])


# Class of a horizontal axis.
AxisType = type[Rounds] | type[CostPaid]


def has_costs(run: Run) -> bool:
    """Return whether the actions of a finished run had costs."""
    return "cost" in run.columns


@dataclass(frozen=True)
class Panel:
    """Panel of a figure.

    Attributes:
        title: quantity that is shown; for choices, the agent.
        curves: name in the legend -> curve, in the order of the legend.
        limits: range of the vertical axis.
        ticks: ticks of a logarithmic axis; empty for a linear axis.
    """

    title: str
    curves: Mapping[str, Curve]
    limits: tuple[float, float]
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class CurvesFigure:
    """Panels that share a horizontal axis and a legend.

    Attributes:
        horizontal: horizontal axis of all panels.
        styles: name in the legend -> style, in the order of the legend.
        panels: at least one panel.
        note: description of the curves, with the number of seeds.
        read_at: index into ``x`` at which the description of a chart in words states values, and words for that
            position.
    """

    horizontal: HorizontalAxis
    styles: LineStyles
    panels: Sequence[Panel]
    note: str
    read_at: tuple[int, str] = (-1, "after the last round")


def by_env(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return label of an environment -> its runs, sorted by labels."""
    return {env: list(group) for env, group in groupby(sorted(runs, key=env_label), env_label)}


def by_agent(runs: Iterable[Run], agents: Iterable[str]) -> dict[str, list[Run]]:
    """Return agent -> its runs, for the agents that have any, in the given order of agents."""
    runs = list(runs)
    by_label = {agent: [run for run in runs if run.agent == agent] for agent in agents}
    return {agent: group for agent, group in by_label.items() if group}


def regret_figure(runs: Sequence[Run], styles: LineStyles, against: AxisType = Rounds) -> CurvesFigure:
    """Compute average and simple regret of finished runs of one environment.

    Regrets are divided by the gap between the optimum and random play.

    Args:
        runs: finished runs of one environment.
        styles: styles of the agents, in the order of the legend.
        against: horizontal axis, Rounds or CostPaid.
    """
    horizontal, groups = against(runs), by_agent(runs, styles)
    average: dict[str, Curve] = {}
    simple: dict[str, Curve] = {}
    for agent, runs_of_agent in groups.items():
        gaps = np.array([[run.optimum - run.random_value] for run in runs_of_agent])
        columns = (("average_regret", -np.inf, average), ("simple_regret", MIN_SIMPLE_REGRET, simple))
        for column, floor, curves in columns:
            regrets = horizontal.values(runs_of_agent, stack_curves(runs_of_agent, [column])[column] / gaps)
            curves[agent] = curve(regrets, floor, horizontal.x)
    limits = log_limits([line.mean for line in simple.values()])
    panels = [
        Panel("Average regret (1 = random play)", average, linear_limits([line.mean for line in average.values()])),
        Panel("Simple regret (1 = random play)", simple, limits, log_ticks(*limits)),
    ]
    return CurvesFigure(horizontal, {agent: styles[agent] for agent in groups}, panels, _seeds_note(average.values()))


def _seeds_note(curves: Iterable[Curve]) -> str:
    """Describe the numbers of seeds of the curves and how their spread is drawn."""
    counts = [line.seeds for line in curves]
    fewest, most = min(counts), max(counts)
    if most == 1:
        return "1 seed"
    spread = "95 % bootstrap intervals"
    if most < aggregate.MIN_SEEDS:
        spread = "single runs thin"
    elif fewest < aggregate.MIN_SEEDS:
        spread += f" from {aggregate.MIN_SEEDS} seeds on, below single runs thin"
    return f"Means of {fewest if fewest == most else f'{fewest} to {most}'} seeds; {spread}"


def choice_figure(runs: Sequence[Run], agents: Iterable[str], against: AxisType = Rounds) -> CurvesFigure:
    """Compute how often each target set or scope had been chosen after t rounds, a panel per agent.

    Target sets and scopes that an agent never chose have no curve.

    Args:
        runs: finished runs of one environment, at least one of them with choices.
        agents: agents in the order of their panels.
        against: horizontal axis, Rounds or CostPaid.
    """
    choosing = [run for run in runs if run.choices]
    horizontal, styles = against(runs), choice_styles(choosing)
    panels = []
    for agent, runs_of_agent in by_agent(choosing, agents).items():
        shares = choice_frequencies(runs_of_agent, list(styles))
        curves = {
            name: curve(horizontal.values(runs_of_agent, share), x=horizontal.x) for name, share in shares.items()
        }
        panels.append(Panel(agent, curves, SHARE_LIMITS))
    return CurvesFigure(
        horizontal, styles, panels, "Share of rounds 1 to t in which each target set or scope was chosen"
    )


def choice_styles(runs: Sequence[Run]) -> dict[str, LineStyle]:
    """Return name -> style of the eight target sets or scopes that were chosen most, and of all others together."""
    counts: Counter[str] = Counter()
    for run in runs:
        for choice, count in zip(*np.unique(run.curve("choice"), return_counts=True), strict=True):
            counts[run.choices[choice]] += count / run.horizon
    names = [name for name, _ in counts.most_common(MAX_CHOICES)] + ([OTHERS] if len(counts) > MAX_CHOICES else [])
    return {name: line_style(index) for index, name in enumerate(names)}


def choice_frequencies(runs: Sequence[Run], separate: Sequence[str]) -> dict[str, np.ndarray]:
    """Return name -> frequencies of the ``separate`` choices, and the sum of the others: shape ``(seeds, rounds)``."""
    names = runs[0].choices
    curves = np.stack([running_frequencies(run.curve("choice"), len(names)) for run in runs])
    chosen = {name: index for index, name in enumerate(names) if curves[:, -1, index].any()}
    frequencies = {name: curves[..., chosen[name]] for name in separate if name in chosen}
    if others := [index for name, index in chosen.items() if name not in frequencies]:
        frequencies[OTHERS] = curves[..., others].sum(axis=-1)
    return frequencies


def profile_figure(board: Leaderboard, group: str, styles: LineStyles | None = None) -> CurvesFigure:
    """Return the fraction of runs above each score; agents with five seeds on every environment have intervals.

    Args:
        board: the leaderboard.
        group: one of its groups.
        styles: styles of all agents of a report; None for styles of the group's agents.
    """
    overall = board.overall.filter(pl.col("group") == group)
    with_interval = set(overall.filter(ENOUGH_SEEDS)["agent"])
    profiles = board.profiles.filter(pl.col("group") == group).partition_by("agent", as_dict=True)
    styles = styles or line_styles(str(agent) for (agent,) in profiles)
    curves = {}
    for agent in (agent for agent in styles if (agent,) in profiles):
        columns = profiles[agent,].select("threshold", pl.col("^fraction.*$").cast(pl.Float64))
        x, share, *ends = (column.to_numpy() for column in columns)
        low, high = ends if agent in with_interval else (None, None)
        curves[agent] = Curve(x, share, low, high, np.empty((0, len(share))), 0)
    panel = Panel("Share of runs with a score above s", curves, SHARE_LIMITS)
    note, agent_styles = "Performance profiles: higher is better", {agent: styles[agent] for agent in curves}
    axis = HorizontalAxis("Score s", "Score $s$ (0 = random play, 1 = optimum)", x, x)
    return CurvesFigure(axis, agent_styles, [panel], note, (len(x) // 2, "at s = 0.5"))


def linear_limits(means: Sequence[Array]) -> tuple[float, float]:
    """Return the range of an axis from 0, or below the lowest mean if it is negative, to above the highest mean."""
    heights = np.concatenate(means)
    low, high = min(0.0, float(heights.min())), float(heights.max())
    span = high - low or 1.0
    return (low - 0.05 * span if low < 0 else 0.0), high + 0.2 * span


def log_limits(means: Sequence[Array]) -> tuple[float, float]:
    """Return the range of a logarithmic axis for positive means: with a margin, and at least a factor of ten."""
    heights = np.concatenate(means)
    low, high = np.log10(heights.min()), np.log10(heights.max())
    margin = max(0.08 * (high - low), 0.5 * (1.0 - (high - low)), 0.05)
    return float(10 ** (low - margin)), float(10 ** (high + margin))


def log_ticks(low: float, high: float) -> list[float]:
    """Return at most :data:`MAX_TICKS` ticks of a logarithmic axis: powers of ten, and their multiples if they fit."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [value for value in values if low <= value <= high]
        if len(ticks) <= MAX_TICKS:
            return ticks
    return ticks[:: -(-len(ticks) // MAX_TICKS)]


def format_tick(value: float) -> str:
    """Return a tick's label: ``0.001``, ``20``, with an exponent only below 1e-5 and from 1e6 on."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if 1e-5 <= abs(value) < 1e6 else f"{value:g}"


def known_front(runs: Sequence[Run]) -> Front | None:
    """Return the names of the objectives and the recorded Pareto front of the runs' environment.

    The result is None if no front is recorded, or a run lacks the column :data:`RECOMMENDED`.
    """
    env = runs[0].env
    entry = find_entry(env) if Spec.parse(env).name == env else None
    if entry is None or entry.optimum is None or not entry.optimum.front:
        return None
    if not all(RECOMMENDED in run.columns for run in runs):
        return None
    objectives = build_problem(entry.problem).outcomes.objectives
    names = [objective.name if objective.sign > 0 else f"-{objective.name}" for objective in objectives]
    return names, np.array(entry.optimum.front)
