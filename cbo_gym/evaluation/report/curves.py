"""Curves of a report, worked out once: :mod:`.plots` draws them on paper, :mod:`.page` as interactive charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.metrics import aggregate
from cbo_gym.evaluation.metrics.regret import running_frequencies
from cbo_gym.evaluation.report.palette import Look, of_place
from cbo_gym.evaluation.report.palette import looks as looks_of
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run, stacked

Array = np.ndarray
Looks = Mapping[str, Look]

FEWEST_FOR_BAND = 5  # seeds; of fewer the single runs say more than an interval that fills the panel
DRAWS = 1000
MAX_TICKS = 5
FLOOR = 1e-4  # below this share of the gap a regret is drawn as zero
MAX_CHOICES = 8  # lines of a panel; the others are added up
OTHERS = "others"
SHARES = (0.0, 1.02)
PROFILE_COLUMNS = ("threshold", "fraction", "fraction_low", "fraction_high")
COST_STEPS = 150
MAX_CHART_ROUNDS = 150  # of a line on a page; more are no wider than a dot on a screen


@dataclass(frozen=True)
class Curve:
    """The curve of one method.

    Attributes:
        x: rounds from 1, or other values on the horizontal axis, shape ``(n,)``.
        mean: over seeds, shape ``(n,)``.
        low, high: ends of the 95 % interval of the mean, shape ``(n,)``; None with fewer than five seeds.
        runs: the single runs with fewer than five seeds, shape ``(seeds, n)``; else, and of one seed, none.
        seeds: their number.
    """

    x: Array
    mean: Array
    low: Array | None
    high: Array | None
    runs: Array
    seeds: int


def curve(values: Array, floor: float = -np.inf, x: Array | None = None) -> Curve:
    """Mean and interval in every round, or at other values of x.

    The interval is a percentile bootstrap of the seeds, see :func:`aggregate.bootstrap_weights`.

    Args:
        values: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        floor: what lies below is drawn at it, for logarithmic axes.
        x: shape ``(rounds,)``; None for the rounds from 1.
    """
    known = ~np.isnan(values).any(axis=0)
    x, values = (np.arange(1, len(known) + 1) if x is None else x)[known], values[:, known]
    seeds = len(values)
    mean = values.mean(axis=0).clip(min=floor)
    if seeds < FEWEST_FOR_BAND:
        runs = values if seeds > 1 else values[:0]
        return Curve(x, mean, None, None, runs.clip(min=floor), seeds)
    low, high = aggregate.interval(_bootstrap(seeds) @ values)
    return Curve(x, mean, low.clip(min=floor), high.clip(min=floor), values[:0], seeds)


@cache
def _bootstrap(seeds: int) -> Array:
    """Weights of resamples, shape ``(draws, seeds)``; the same for all, so that figures agree."""
    return aggregate.bootstrap_weights(np.zeros((1, seeds)), DRAWS, np.random.default_rng(0))[:, 0]


class Rounds:
    """The rounds of runs of one environment as a horizontal axis.

    Args:
        runs: finished ones.

    Attributes:
        title: of the axis; ``in_figures`` with mathematics.
        places: where curves have values, shape ``(n,)``.
        few: those that are enough for a page.
    """

    title = "Round"
    in_figures = "Round $t$"

    def __init__(self, runs: Sequence[Run]) -> None:
        horizon = runs[0].horizon
        self.places = np.arange(1, horizon + 1)
        self.few = np.unique(np.linspace(1, horizon, min(horizon, MAX_CHART_ROUNDS)).round().astype(int))

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        """The curves at the places: shape ``(seeds, n)`` of values after each round, shape ``(seeds, rounds)``."""
        return curves


class CostPaid:
    """The sum of the costs of a run's actions as a horizontal axis. Arguments and attributes are those of Rounds.

    The runs of an agent spend at different speeds. A run's value at a cost is that after the last round that it had
    paid for by then. It has none before its first round, and once it has ended keeps its last; an agent's curve ends
    with the dearest of its runs. Of what is not known after each round, as recommendations, the last that is counts.
    """

    title = in_figures = "Cost paid"

    def __init__(self, runs: Sequence[Run]) -> None:
        paid = [_paid(own) for own in by_agent(runs, {run.agent for run in runs}).values()]
        ends = np.array([(one[:, 0].max(), one[:, -1].max()) for one in paid])
        self.places = self.few = np.unique([*np.linspace(0.0, ends.max(), COST_STEPS + 1), *ends.ravel()])

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        """The curves of one agent's runs at the places, NaN where it has none."""
        paid = _paid(runs)
        last_known = np.maximum.accumulate(np.where(np.isnan(curves), 0, np.arange(curves.shape[1])), axis=1)
        curves = np.take_along_axis(curves, last_known, axis=1)
        rounds = np.stack([np.searchsorted(one, self.places, side="right") for one in paid]) - 1
        found = np.take_along_axis(curves, rounds.clip(min=0), axis=1)
        return np.where((rounds < 0) | (self.places > paid[:, -1].max()), np.nan, found)


def _paid(runs: Sequence[Run]) -> Array:
    """The cost that each run had paid after each round, shape ``(seeds, rounds)``."""
    return np.stack([np.cumsum(run.curve("cost")) for run in runs])


class Scores:
    """Scores from 0 to 1, against which shares of runs are drawn; attributes are those of Rounds."""

    title = "Score s"
    in_figures = "Score $s$ (0 = random play, 1 = optimum)"

    def __init__(self, places: Array) -> None:
        self.places = self.few = places


Horizontal = Rounds | CostPaid


def has_costs(run: Run) -> bool:
    """Whether a finished run's actions had costs."""
    return "cost" in run.columns


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        title: what is shown; of choices, whose.
        curves: by the names of the legend, in its order.
        limits: of the vertical axis.
        ticks: of a logarithmic one; none of a linear one.
    """

    title: str
    curves: Mapping[str, Curve]
    limits: tuple[float, float]
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class CurvesFigure:
    """Panels with one horizontal axis and one legend.

    Attributes:
        horizontal: the axis.
        looks: of the legend's entries, in their order.
        panels: at least one.
        note: what is drawn, and on what it rests.
        read_at: index on the axis, and its name, of the values that a description of the figure lists.
    """

    horizontal: Horizontal | Scores
    looks: Looks
    panels: Sequence[Panel]
    note: str
    read_at: tuple[int, str] = (-1, "after the last round")


def by_env(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each environment, sorted by its label."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=env_label):
        found.setdefault(env_label(run), []).append(run)
    return found


def by_agent(runs: Iterable[Run], agents: Iterable[str]) -> dict[str, list[Run]]:
    """The runs of each agent that has any, in the order of the agents."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.agent, []).append(run)
    return {agent: found[agent] for agent in agents if agent in found}


def regret_figure(runs: Sequence[Run], looks: Looks, against: type[Horizontal] = Rounds) -> CurvesFigure:
    """Average and simple regret of the finished runs of one environment, in gaps of optimum and random play."""
    horizontal, of_agent = against(runs), by_agent(runs, looks)

    def curves(column: str, floor: float) -> dict[str, Curve]:
        found = {}
        for agent, own in of_agent.items():
            gaps = np.array([run.optimum - run.random_value for run in own])
            regrets = stacked(own, [column])[column] / gaps[:, None]
            found[agent] = curve(horizontal.values(own, regrets), floor, horizontal.places)
        return found

    average, simple = curves("average_regret", -np.inf), curves("simple_regret", FLOOR)
    limits = log_limits([one.mean for one in simple.values()])
    panels = [
        Panel("Average regret (1 = random play)", average, linear_limits([one.mean for one in average.values()])),
        Panel("Simple regret (1 = random play)", simple, limits, log_ticks(*limits)),
    ]
    seeds = len({run.seed for run in runs})
    shown = "single runs thin" if seeds < FEWEST_FOR_BAND else "95 % bootstrap intervals"
    note = "1 seed" if seeds == 1 else f"Means of {seeds} seeds; {shown}"
    return CurvesFigure(horizontal, {agent: looks[agent] for agent in of_agent}, panels, note)


def choice_figure(runs: Sequence[Run], agents: Iterable[str], against: type[Horizontal] = Rounds) -> CurvesFigure:
    """How often each target set or scope had been chosen after t rounds on one environment, one panel per agent.

    What an agent never chose has no curve.

    Args:
        runs: finished ones, of which some chose.
        agents: in the order of their panels.
        against: the horizontal axis.
    """
    choosing = [run for run in runs if run.choices]
    horizontal, looks = against(runs), choice_styles(choosing)
    panels = []
    for agent, own in by_agent(choosing, agents).items():
        shares = choice_frequencies(own, list(looks))
        curves = {name: curve(horizontal.values(own, share), x=horizontal.places) for name, share in shares.items()}
        panels.append(Panel(agent, curves, SHARES))
    return CurvesFigure(
        horizontal, looks, panels, "Share of rounds 1 to t in which each target set or scope was chosen"
    )


def choice_styles(runs: Sequence[Run]) -> dict[str, Look]:
    """A look for each of the eight target sets or scopes that the runs chose most, and for the others together."""
    often: Counter[str] = Counter()
    for run in runs:
        for place, count in zip(*np.unique(run.curve("choice"), return_counts=True), strict=True):
            often[run.choices[place]] += count / run.horizon
    names = [name for name, _ in often.most_common(MAX_CHOICES)] + ([OTHERS] if len(often) > MAX_CHOICES else [])
    return {name: of_place(place) for place, name in enumerate(names)}


def choice_frequencies(runs: Sequence[Run], shown: Sequence[str]) -> dict[str, np.ndarray]:
    """Choice -> shape ``(seeds, rounds)``, of those shown that were ever chosen; the others are added up."""
    names = runs[0].choices
    curves = np.stack([running_frequencies(run.curve("choice"), len(names)) for run in runs])
    chosen = [place for place in range(len(names)) if curves[:, -1, place].any()]
    found = {name: curves[..., names.index(name)] for name in shown if name in names and names.index(name) in chosen}
    if rest := [place for place in chosen if names[place] not in found]:
        found[OTHERS] = curves[..., rest].sum(axis=-1)
    return found


def profile_figure(board: Leaderboard, group: str, looks: Looks | None = None) -> CurvesFigure:
    """The share of runs above each score; bands of agents with five seeds or more on every environment.

    Args:
        board: the leaderboard.
        group: one of its groups.
        looks: of its agents; None for those of the group's agents alone.
    """
    overall = board.overall.filter(pl.col("group") == group)
    sure = set(overall.filter(pl.col("fewest_seeds") >= FEWEST_FOR_BAND)["agent"])
    profiles = board.profiles.filter(pl.col("group") == group).partition_by("agent", as_dict=True)
    looks = looks or looks_of(str(agent) for (agent,) in profiles)
    curves = {}
    for agent in (agent for agent in looks if (agent,) in profiles):
        rows = profiles[agent,]
        x, share, *ends = (rows[name].cast(pl.Float64).to_numpy() for name in PROFILE_COLUMNS)
        low, high = ends if agent in sure else (None, None)
        curves[agent] = Curve(x, share, low, high, np.empty((0, len(share))), 0)
    panel = Panel("Share of runs with a score above s", curves, SHARES)
    note = "Performance profiles: higher is better"
    shown = {agent: looks[agent] for agent in curves}
    return CurvesFigure(Scores(x), shown, [panel], note, (len(x) // 2, "at s = 0.5"))


def linear_limits(means: Sequence[Array]) -> tuple[float, float]:
    """The range of an axis from 0, or from what lies below it, to a quarter above the highest mean."""
    heights = np.concatenate(means)
    low, high = min(0.0, float(heights.min())), float(heights.max())
    span = high - low or 1.0
    return (low - 0.05 * span if low < 0 else 0.0), high + 0.2 * span


def log_limits(means: Sequence[Array]) -> tuple[float, float]:
    """The range of a logarithmic axis: a margin about the means, which are positive, and at least a factor of ten."""
    heights = np.concatenate(means)
    low, high = np.log10(heights.min()), np.log10(heights.max())
    margin = max(0.08 * (high - low), 0.5 * (1.0 - (high - low)), 0.05)
    return float(10 ** (low - margin)), float(10 ** (high + margin))


def log_ticks(low: float, high: float) -> list[float]:
    """A few plain values inside a logarithmic range: powers of ten, and where these are few also 2 and 5 times them."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [value for value in values if low <= value <= high]
        if len(ticks) <= MAX_TICKS:
            return ticks
    return ticks[:: -(-len(ticks) // MAX_TICKS)]


def plain(value: float) -> str:
    """A tick's label: ``0.001``, ``20``; powers only of what has more than five places."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if 1e-5 <= abs(value) < 1e6 else f"{value:g}"
